"""The networks: Vision Transformer and ResNet."""

import torch
from einops import rearrange, reduce, repeat
from einops.layers.torch import Rearrange
from torch import Tensor, nn

__all__ = [
    "BasicBlock",
    "EncoderBlock",
    "MultiHeadSelfAttention",
    "PatchEmbedding",
    "ResNet18",
    "VisionTransformer",
    "sinusoidal_positions",
]


class PatchEmbedding(nn.Sequential):
    """A rearrangement and a linear layer, nothing else, so a Sequential is enough."""

    def __init__(self, image_size: int, patch_size: int, in_channels: int, dim: int):
        super().__init__(
            Rearrange("b c (r p) (s q) -> b (r s) (p q c)", p=patch_size, q=patch_size),
            nn.Linear(patch_size * patch_size * in_channels, dim),
        )


def sinusoidal_positions(tokens: int, dim: int) -> Tensor:
    table = torch.zeros(tokens, dim)
    angles = torch.arange(tokens)[:, None] / 10000 ** (torch.arange(0, dim, 2) / dim)
    table[:, 0::2] = torch.sin(angles)
    table[:, 1::2] = torch.cos(angles)
    return table


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, dim: int, heads: int, dropout: float = 0.0):
        super().__init__()
        self.heads = heads
        self.scale = (dim // heads) ** -0.5
        self.qkv = nn.Linear(dim, 3 * dim)
        self.drop = nn.Dropout(dropout)
        self.project = nn.Linear(dim, dim)

    def forward(self, x: Tensor, return_weights: bool = False):
        # the order in the wide layer is: head, then q/k/v, then feature
        q, k, v = rearrange(self.qkv(x), "b n (h three d) -> three b h n d", three=3, h=self.heads)
        weights = (self.scale * q @ k.mT).softmax(-1)
        y = self.project(rearrange(self.drop(weights) @ v, "b h n d -> b n (h d)"))
        return (y, weights) if return_weights else y


class EncoderBlock(nn.Module):
    def __init__(self, dim: int, heads: int, mlp_ratio: float = 4.0, dropout: float = 0.0):
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(dim), nn.LayerNorm(dim)])
        self.attention = MultiHeadSelfAttention(dim, heads, dropout)
        self.mlp = nn.Sequential(
            nn.Linear(dim, int(mlp_ratio * dim)),
            nn.GELU(),
            nn.Linear(int(mlp_ratio * dim), dim),
            nn.Dropout(dropout),
        )

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norms[0](x))
        return x + self.mlp(self.norms[1](x))


class VisionTransformer(nn.Module):
    def __init__(
        self,
        image_size=32,
        patch_size=4,
        in_channels=3,
        num_classes=10,
        dim=192,
        depth=9,
        heads=8,
        mlp_ratio=4.0,
        dropout=0.1,
        positions="learned",
        pool="cls",
    ):
        super().__init__()
        self.embedding = PatchEmbedding(image_size, patch_size, in_channels, dim)
        n = (image_size // patch_size) ** 2
        if pool == "cls":
            n += 1
            self.class_token = nn.Parameter(torch.randn(dim) * 0.02)
        else:
            self.register_parameter("class_token", None)
        if positions == "learned":
            self.positions = nn.Parameter(nn.init.trunc_normal_(torch.empty(n, dim), std=0.02))
        elif positions == "sinusoidal":
            self.register_buffer("positions", sinusoidal_positions(n, dim), persistent=False)
        else:
            raise ValueError(positions)
        self.dropout = nn.Dropout(dropout)
        self.depth = depth
        for i in range(depth):
            self.add_module(f"block{i}", EncoderBlock(dim, heads, mlp_ratio, dropout))
        self.head = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, num_classes))

    def run(self, images: Tensor, blocks: int) -> Tensor:
        """The tokens after so many blocks."""
        x = self.embedding(images)
        if self.class_token is not None:
            x = torch.cat([repeat(self.class_token, "d -> b 1 d", b=len(x)), x], 1)
        x = self.dropout(x + self.positions)
        for i in range(blocks):
            x = self.get_submodule(f"block{i}")(x)
        return x

    def forward(self, images: Tensor) -> Tensor:
        x = self.run(images, self.depth)
        pooled = x[:, 0] if self.class_token is not None else reduce(x, "b n d -> b d", "mean")
        return self.head(pooled)

    def attention(self, images: Tensor) -> Tensor:
        x = self.run(images, self.depth - 1)
        last = self.get_submodule(f"block{self.depth - 1}")
        _, weights = last.attention(last.norms[0](x), return_weights=True)
        return weights


def conv(before: int, after: int, kernel: int, stride: int = 1) -> nn.Sequential:
    """Convolution and batch norm."""
    return nn.Sequential(
        nn.Conv2d(before, after, kernel, stride, padding=(kernel - 1) // 2, bias=False),
        nn.BatchNorm2d(after),
    )


class BasicBlock(nn.Module):
    def __init__(self, in_channels: int, channels: int, stride: int = 1):
        super().__init__()
        self.first = conv(in_channels, channels, 3, stride)
        self.second = conv(channels, channels, 3)
        same = in_channels == channels and stride == 1
        self.shortcut = nn.Sequential() if same else conv(in_channels, channels, 1, stride)

    def forward(self, x: Tensor) -> Tensor:
        out = self.second(torch.relu(self.first(x)))
        out += self.shortcut(x)
        return torch.relu(out)


def group(before: int, after: int, stride: int) -> nn.Sequential:
    return nn.Sequential(BasicBlock(before, after, stride), BasicBlock(after, after))


class ResNet18(nn.Module):
    def __init__(self, num_classes: int = 10, width: int = 64):
        super().__init__()
        self.stem = nn.Sequential(conv(3, width, 3), nn.ReLU())
        self.group1 = group(width, width, 1)
        self.group2 = group(width, width * 2, 2)
        self.group3 = group(width * 2, width * 4, 2)
        self.group4 = group(width * 4, width * 8, 2)
        self.linear = nn.Linear(width * 8, num_classes)

    def forward(self, images: Tensor) -> Tensor:
        x = self.stem(images)
        x = self.group4(self.group3(self.group2(self.group1(x))))
        return self.linear(reduce(x, "b c h w -> b c", "mean"))
