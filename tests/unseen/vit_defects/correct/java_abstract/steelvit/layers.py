"""PreNorm, FeedForward and Attention."""

import torch
from torch import nn

from .contracts import AbstractTokenLayer
from .validation import Preconditions


class PreNorm(AbstractTokenLayer):
    """Decorator (in the sense of the pattern): normalizes the tokens, then delegates to `fn`."""

    def __init__(self, dim, fn):
        super().__init__(Preconditions.require_positive(dim, "dim"))
        self._norm = nn.LayerNorm(self.get_dim())
        self._delegate = Preconditions.require_callable(fn, "fn")

    def get_norm(self):
        return self._norm

    def get_delegate(self):
        return self._delegate

    def forward(self, x, **kwargs):
        return self._delegate(self._norm(x), **kwargs)

    def describe(self):
        return f"PreNorm({type(self._delegate).__name__})"


class FeedForward(AbstractTokenLayer):
    def __init__(self, dim, hidden_dim, dropout=0.0):
        super().__init__(Preconditions.require_positive(dim, "dim"))
        self._hidden_dim = Preconditions.require_positive(hidden_dim, "hidden_dim")
        rate = Preconditions.require_probability(dropout, "dropout")
        self._layers = nn.Sequential(
            nn.Linear(self.get_dim(), self._hidden_dim),
            nn.ReLU(),
            nn.Dropout(rate),
            nn.Linear(self._hidden_dim, self.get_dim()),
            nn.Dropout(rate),
        )

    def get_hidden_dim(self):
        return self._hidden_dim

    def forward(self, x):
        return self._layers(Preconditions.require_last_axis(x, self.get_dim(), "FeedForward"))

    def describe(self):
        return f"FeedForward({self.get_dim()} -> {self._hidden_dim} -> {self.get_dim()})"


class AttentionHead(nn.Module):
    """One head. It owns its queries, keys and values."""

    def __init__(self, dim, dim_head):
        super().__init__()
        self._query = nn.Linear(dim, dim_head)
        self._key = nn.Linear(dim, dim_head)
        self._value = nn.Linear(dim, dim_head)
        self._scale = dim_head**-0.5

    def forward(self, x):
        """(batch, tokens, dim) to (batch, tokens, dim_head)"""
        scores = torch.bmm(self._query(x), self._key(x).transpose(1, 2)) * self._scale
        return torch.bmm(scores.softmax(dim=2), self._value(x))


class Attention(AbstractTokenLayer):
    """Composite of independent heads."""

    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__(Preconditions.require_positive(dim, "dim"))
        number_of_heads = Preconditions.require_positive(heads, "heads")
        self._dim_head = Preconditions.require_positive(dim_head, "dim_head")
        self._heads = nn.ModuleList(AttentionHead(dim, self._dim_head) for _ in range(number_of_heads))
        self._output = nn.Linear(number_of_heads * self._dim_head, dim)
        self._dropout = nn.Dropout(Preconditions.require_probability(dropout, "dropout"))

    def get_number_of_heads(self):
        return len(self._heads)

    def get_dim_head(self):
        return self._dim_head

    def forward(self, x):
        Preconditions.require_last_axis(x, self.get_dim(), "Attention")
        side_by_side = torch.cat([head(x) for head in self._heads], dim=-1)
        return self._dropout(self._output(side_by_side))

    def describe(self):
        return f"Attention({self.get_number_of_heads()} heads of {self._dim_head})"
