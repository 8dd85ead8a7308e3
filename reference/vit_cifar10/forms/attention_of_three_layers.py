"""Attention with three projections without biases, and einsum."""


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, dim, heads, dropout=0.0):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value = (nn.Linear(dim, dim, bias=False) for _ in range(3))
        self.project = nn.Linear(dim, dim)
        self.drop = nn.Dropout(dropout)

    def forward(self, x, return_weights=False):
        batch, tokens, dim = x.shape
        shape = (batch, tokens, self.heads, dim // self.heads)
        q, k, v = (layer(x).view(shape) for layer in (self.query, self.key, self.value))
        scores = torch.einsum("bnhd,bmhd->bhnm", q, k) / math.sqrt(dim // self.heads)
        weights = torch.softmax(scores, dim=-1)
        mixed = torch.einsum("bhnm,bmhd->bnhd", self.drop(weights), v).reshape(batch, tokens, dim)
        out = self.project(mixed)
        if return_weights:
            return out, weights
        return out
