"""The networks. Everything that has positions is an ``nn.Embedding``, everything that is linear an ``nn.Linear``."""

import math

import torch
from torch import nn


class PatchEmbedding(nn.Module):
    """
    Parameters
    ----------
    image_size, patch_size, in_channels, dim : int

    Notes
    -----
    Two cuts along the axes, as ``np.split`` would do: rows of patches first, columns second.
    """

    def __init__(self, image_size, patch_size, in_channels, dim):
        super().__init__()
        self.patch_size = patch_size
        self.coef = nn.Linear(in_channels * patch_size * patch_size, dim)

    def forward(self, images):
        patches = [
            cell.flatten(1)
            for band in images.split(self.patch_size, dim=2)
            for cell in band.split(self.patch_size, dim=3)
        ]
        return self.coef(torch.stack(patches, dim=1))


def sinusoidal_positions(tokens, dim):
    """
    Returns
    -------
    torch.Tensor of shape (tokens, dim)
    """
    table = torch.zeros(tokens, dim)
    position = torch.arange(tokens, dtype=torch.float64)
    for column in range(dim):
        even = column - column % 2
        angle = position / 10000 ** (even / dim)
        table[:, column] = torch.cos(angle) if column % 2 else torch.sin(angle)
    return table


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, dim, heads, dropout=0.0):
        super().__init__()
        if dim % heads:
            raise ValueError(f"dim={dim} is not a multiple of heads={heads}.")
        self.heads = heads
        self.q_proj = nn.Linear(dim, dim)
        self.k_proj = nn.Linear(dim, dim)
        self.v_proj = nn.Linear(dim, dim)
        self.o_proj = nn.Linear(dim, dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, return_weights=False):
        width = x.shape[-1] // self.heads
        q, k, v = (proj(x).split(width, dim=-1) for proj in (self.q_proj, self.k_proj, self.v_proj))
        weights, answers = [], []
        for qh, kh, vh in zip(q, k, v):  # head by head, each (B, N, width)
            wh = torch.softmax(torch.bmm(qh, kh.transpose(1, 2)) / math.sqrt(width), dim=2)
            weights.append(wh)
            answers.append(torch.bmm(self.dropout(wh), vh))
        result = self.o_proj(torch.cat(answers, dim=2))
        if not return_weights:
            return result
        return result, torch.stack(weights, dim=1)


class EncoderBlock(nn.Module):
    def __init__(self, dim, heads, mlp_ratio=4.0, dropout=0.0):
        super().__init__()
        self.scaler_1 = nn.LayerNorm(dim)
        self.attention = MultiHeadSelfAttention(dim, heads, dropout=dropout)
        self.scaler_2 = nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, int(mlp_ratio * dim)), nn.GELU(), nn.Linear(int(mlp_ratio * dim), dim))
        self.mlp_dropout = nn.Dropout(dropout)

    def forward(self, x):
        x = self.attention(self.scaler_1(x)) + x
        x = self.mlp_dropout(self.mlp(self.scaler_2(x))) + x
        return x


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
        self.pool = pool
        self.patch_embedding = PatchEmbedding(image_size, patch_size, in_channels, dim)
        n_tokens = (image_size // patch_size) * (image_size // patch_size)
        if pool == "cls":
            n_tokens += 1
            self.class_embedding = nn.Embedding(1, dim)
            nn.init.normal_(self.class_embedding.weight, std=0.02)
        elif pool != "mean":
            raise ValueError(f"pool must be 'cls' or 'mean', got {pool!r}.")
        if positions == "learned":
            self.position_embedding = nn.Embedding(n_tokens, dim)
            nn.init.normal_(self.position_embedding.weight, std=0.02)
        elif positions == "sinusoidal":
            self.position_embedding = nn.Embedding.from_pretrained(sinusoidal_positions(n_tokens, dim), freeze=True)
        else:
            raise ValueError(f"positions must be 'learned' or 'sinusoidal', got {positions!r}.")
        self.dropout = nn.Dropout(dropout)
        self.blocks = nn.ModuleList([EncoderBlock(dim, heads, mlp_ratio, dropout) for _ in range(depth)])
        self.scaler = nn.LayerNorm(dim)
        self.classifier = nn.Linear(dim, num_classes)

    def _embed(self, images):
        tokens = self.patch_embedding(images)
        if self.pool == "cls":
            which = torch.zeros(tokens.shape[0], 1, dtype=torch.long, device=tokens.device)
            tokens = torch.cat((self.class_embedding(which), tokens), dim=1)
        where = torch.arange(tokens.shape[1], device=tokens.device)
        return self.dropout(tokens + self.position_embedding(where))

    def forward(self, images):
        x = self._embed(images)
        for block in self.blocks:
            x = block(x)
        x = self.scaler(x)
        return self.classifier(x[:, 0, :] if self.pool == "cls" else torch.mean(x, dim=1))

    def attention(self, images):
        x = self._embed(images)
        for number, block in enumerate(self.blocks, start=1):
            if number == len(self.blocks):
                _, weights = block.attention(block.scaler_1(x), return_weights=True)
            else:
                x = block(x)
        return weights


def _conv_bn(n_in, n_out, kernel, stride):
    return [nn.Conv2d(n_in, n_out, kernel, stride=stride, padding=kernel // 2, bias=False), nn.BatchNorm2d(n_out)]


class BasicBlock(nn.Module):
    def __init__(self, in_channels, channels, stride=1):
        super().__init__()
        self.main = nn.Sequential(
            *_conv_bn(in_channels, channels, 3, stride), nn.ReLU(), *_conv_bn(channels, channels, 3, 1)
        )
        needed = stride != 1 or in_channels != channels
        self.shortcut = nn.Sequential(*_conv_bn(in_channels, channels, 1, stride)) if needed else None

    def forward(self, x):
        out = self.main(x)
        out = out + (self.shortcut(x) if self.shortcut is not None else x)
        return torch.clamp(out, min=0)


class ResNet18(nn.Module):
    def __init__(self, num_classes=10, width=64):
        super().__init__()
        steps = _conv_bn(3, width, 3, 1) + [nn.ReLU()]
        n_in = width
        for n_out, stride in ((width, 1), (2 * width, 2), (4 * width, 2), (8 * width, 2)):
            steps += [BasicBlock(n_in, n_out, stride=stride), BasicBlock(n_out, n_out)]
            n_in = n_out
        self.features = nn.Sequential(*steps)
        self.classifier = nn.Linear(n_in, num_classes)

    def forward(self, images):
        return self.classifier(torch.mean(self.features(images), dim=(-2, -1)))


def parameter_table(model):
    """
    Returns
    -------
    list of (str, int)
        One row for each kind of thing, as in ``blocks``; the rest (parameters of shared modules count once).
    """
    table = {}
    for name, parameter in model.named_parameters():
        *owner, _ = name.split(".")
        key = ".".join(owner[:2]) or name
        table[key] = table.get(key, 0) + parameter.numel()
    return [(key, number) for key, number in table.items()]
