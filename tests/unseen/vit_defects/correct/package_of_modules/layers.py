"""The Vision Transformer, from the smallest part to the whole."""

import torch
from einops import pack, rearrange, unpack
from torch import nn


class PreNorm(nn.Module):
    """Layer normalization, then `fn`; keyword arguments go to `fn`."""

    def __init__(self, dim, fn):
        super().__init__()
        self.add_module("norm", nn.LayerNorm(dim))
        self.add_module("fn", fn)

    def forward(self, x, **kwargs):
        return self.fn(self.norm(x), **kwargs)


class FeedForward(nn.Module):
    """linear, GELU, dropout, linear, dropout"""

    def __init__(self, dim, hidden_dim, dropout=0.0):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(dim, hidden_dim),
            nn.GELU(),
            nn.Dropout(dropout),
            nn.Linear(hidden_dim, dim),
            nn.Dropout(dropout),
        )

    def forward(self, x):
        return self.net(x)


class Head(nn.Module):
    """One head of attention; returns (batch, tokens, dim_head)."""

    def __init__(self, dim, dim_head):
        super().__init__()
        self.q = nn.Linear(dim, dim_head, bias=False)
        self.k = nn.Linear(dim, dim_head, bias=False)
        self.v = nn.Linear(dim, dim_head, bias=False)
        self.scale = dim_head**-0.5

    def forward(self, x):
        similarity = torch.einsum("bid,bjd->bij", self.q(x), self.k(x)) * self.scale
        return similarity.softmax(dim=-1) @ self.v(x)


class Attention(nn.Module):
    """Several heads beside one another, and a projection of what they found."""

    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__()
        self.heads = nn.ModuleList(Head(dim, dim_head) for _ in range(heads))
        self.projection = nn.Linear(heads * dim_head, dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        side_by_side = torch.cat([head(x) for head in self.heads], dim=-1)
        return self.dropout(self.projection(side_by_side))


class Transformer(nn.Module):
    """The encoder: block i is attentions[i] followed by feed_forwards[i]."""

    def __init__(self, dim, depth, heads, dim_head, mlp_dim, dropout=0.0):
        super().__init__()
        self.attentions = nn.ModuleList(
            PreNorm(dim, Attention(dim, heads=heads, dim_head=dim_head, dropout=dropout)) for _ in range(depth)
        )
        self.feed_forwards = nn.ModuleList(
            PreNorm(dim, FeedForward(dim, mlp_dim, dropout=dropout)) for _ in range(depth)
        )

    def forward(self, x):
        for attention, feed_forward in zip(self.attentions, self.feed_forwards, strict=True):
            x = x + attention(x)
            x = x + feed_forward(x)
        return x


class Patches(nn.Module):
    """(batch, channels, height, width) -> (batch, patches, dim)"""

    def __init__(self, patch_size, channels, dim):
        super().__init__()
        self.patch_size = patch_size
        self.projection = nn.Linear(channels * patch_size**2, dim)

    def forward(self, img):
        p = self.patch_size
        return self.projection(rearrange(img, "b c (h p1) (w p2) -> b (h w) (p1 p2 c)", p1=p, p2=p))


class VisionTransformer(nn.Module):
    """An image becomes a score for every class."""

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
        if image_size % patch_size:
            raise ValueError("patch_size must divide image_size")
        if pool not in ("cls", "mean"):
            raise ValueError("pool must be 'cls' or 'mean'")
        self.pool = pool
        self.patches = Patches(patch_size, channels, dim)
        self.cls_token = nn.Parameter(torch.randn(1, dim))
        self.pos_embedding = nn.Parameter(torch.randn(1, 1 + (image_size // patch_size) ** 2, dim) * 0.05)
        self.dropout = nn.Dropout(emb_dropout)
        self.transformer = Transformer(dim, depth, heads, dim_head, mlp_dim, dropout)
        self.mlp_head = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, num_classes))

    def forward(self, img):
        patches = self.patches(img)
        cls = self.cls_token.expand(len(patches), -1)
        tokens, shapes = pack([cls, patches], "b * d")
        tokens = self.transformer(self.dropout(tokens + self.pos_embedding))
        if self.pool == "mean":
            return self.mlp_head(tokens.mean(dim=1))
        cls, _ = unpack(tokens, shapes, "b * d")
        return self.mlp_head(cls)
