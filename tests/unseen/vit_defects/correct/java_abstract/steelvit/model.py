"""Transformer and ViT."""

import torch
from torch import nn

from .contracts import AbstractTokenLayer, Describable, PatchStrategy
from .layers import Attention, FeedForward, PreNorm
from .patches import PatchEmbedderFactory, PoolingFactory
from .validation import Preconditions


class ResidualLayer(AbstractTokenLayer):
    """Adds to its input what the inner layer makes of it."""

    def __init__(self, inner):
        super().__init__(inner.get_dim())
        self._inner = inner

    def get_inner(self):
        return self._inner

    def forward(self, x):
        return x + self._inner(x)

    def describe(self):
        return f"x + {self._inner.describe()}"


class EncoderBlockFactory:
    """Abstract factory of the two parts of a block; every call makes new weights."""

    def __init__(self, dim, heads, dim_head, mlp_dim, dropout):
        self._dim, self._heads, self._dim_head = dim, heads, dim_head
        self._mlp_dim, self._dropout = mlp_dim, dropout

    def create_attention_part(self):
        return ResidualLayer(
            PreNorm(self._dim, Attention(self._dim, self._heads, self._dim_head, self._dropout))
        )

    def create_feed_forward_part(self):
        return ResidualLayer(PreNorm(self._dim, FeedForward(self._dim, self._mlp_dim, self._dropout)))

    def create_block(self):
        return nn.Sequential(self.create_attention_part(), self.create_feed_forward_part())


class Transformer(AbstractTokenLayer):
    def __init__(self, dim, depth, heads, dim_head, mlp_dim, dropout=0.0):
        super().__init__(Preconditions.require_positive(dim, "dim"))
        factory = EncoderBlockFactory(dim, heads, dim_head, mlp_dim, dropout)
        self._blocks = nn.Sequential()
        for _ in range(Preconditions.require_not_negative(depth, "depth")):
            self._blocks.append(factory.create_block())

    def get_depth(self):
        return len(self._blocks)

    def forward(self, x):
        return self._blocks(x)

    def describe(self):
        if not self.get_depth():
            return "no blocks"
        return f"{self.get_depth()} blocks of [{', '.join(part.describe() for part in self._blocks[0])}]"


class TokenSequence(nn.Module):
    """Puts the class token in front and adds the learnable positions."""

    def __init__(self, number_of_patches, dim, dropout):
        super().__init__()
        self._class_token = nn.Parameter(torch.empty(1, 1, dim).normal_(std=0.02))
        self._class_position = nn.Parameter(torch.empty(1, 1, dim).normal_(std=0.02))
        self._patch_positions = nn.Parameter(torch.empty(1, number_of_patches, dim).normal_(std=0.02))
        self._dropout = nn.Dropout(dropout)

    def forward(self, patches):
        first = (self._class_token + self._class_position).expand(patches.shape[0], -1, -1)
        return self._dropout(torch.cat((first, patches + self._patch_positions), dim=1))


class ViT(nn.Module, Describable):
    def __init__(
        self,
        *,
        image_size,
        patch_size,
        num_classes,
        dim,
        depth,
        heads,
        mlp_dim,
        pool="cls",
        channels=1,
        dim_head=64,
        dropout=0.0,
        emb_dropout=0.0,
    ):
        super().__init__()
        for name, value in (
            ("image_size", image_size),
            ("patch_size", patch_size),
            ("num_classes", num_classes),
            ("dim", dim),
            ("channels", channels),
        ):
            Preconditions.require_positive(value, name)
        self._embedder = PatchEmbedderFactory.create(
            PatchStrategy.RESHAPE, image_size, patch_size, channels, dim
        )
        self._sequence = TokenSequence(
            self._embedder.get_number_of_patches(),
            dim,
            Preconditions.require_probability(emb_dropout, "emb_dropout"),
        )
        self._encoder = Transformer(dim, depth, heads, dim_head, mlp_dim, dropout)
        self._pooling = PoolingFactory.create(pool)
        self._head = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, num_classes))

    def get_number_of_parameters(self):
        return sum(p.numel() for p in self.parameters())

    def get_encoder(self):
        return self._encoder

    def forward(self, img):
        tokens = self._sequence(self._embedder(img.contiguous()))
        return self._head(self._pooling(self._encoder(tokens)))

    def describe(self):
        parts = (self._embedder, self._encoder, self._pooling)
        return " | ".join(part.describe() for part in parts) + f" | {self.get_number_of_parameters():,} parameters"
