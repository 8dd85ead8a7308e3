"The ViT and the ResNet"
import math

import torch
from core import *
from torch import nn

__all__ = [
    "PatchEmbedding", "sinusoidal_positions", "MultiHeadSelfAttention", "EncoderBlock", "VisionTransformer",
    "BasicBlock", "ResNet18", "ConvLayer", "parameter_table",
]


class PatchEmbedding(nn.Module):
    def __init__(self, image_size, patch_size, in_channels, dim):
        super().__init__()
        store_attr()
        self.conv = nn.Conv2d(in_channels, dim, patch_size, patch_size)

    def forward(self, images):
        x = self.conv(images)  # bs x dim x gh x gw
        return x.permute(0, 2, 3, 1).reshape(x.shape[0], -1, self.dim)


def sinusoidal_positions(tokens, dim):
    pos = torch.arange(tokens).double()[:, None]
    freq = torch.exp(-math.log(10000) * torch.arange(0, dim, 2).double() / dim)[None]
    table = torch.empty(tokens, dim)
    table[:, 0::2] = (pos * freq).sin()
    table[:, 1::2] = (pos * freq).cos()
    return table


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, dim, heads, dropout=0.0):
        super().__init__()
        store_attr()
        self.qkv = nn.Linear(dim, dim * 3)
        self.proj = nn.Linear(dim, dim)
        self.drop = nn.Dropout(dropout)

    def forward(self, x, return_weights=False):
        bs, n, d = x.shape
        # heads are the slow axis of the features, q k v the fast one: dim*3 = heads * (q|k|v) * head width
        q, k, v = self.qkv(x).view(bs, n, self.heads, 3, d // self.heads).permute(3, 0, 2, 1, 4).unbind(0)
        w = torch.softmax(q @ k.transpose(-1, -2) / (d // self.heads) ** 0.5, -1)
        out = self.proj((self.drop(w) @ v).transpose(1, 2).reshape(bs, n, d))
        return (out, w) if return_weights else out


class EncoderBlock(nn.Module):
    def __init__(self, dim, heads, mlp_ratio=4.0, dropout=0.0):
        super().__init__()
        nh = int(dim * mlp_ratio)
        self.n1, self.n2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = MultiHeadSelfAttention(dim, heads, dropout)
        self.mlp = nn.Sequential(nn.Linear(dim, nh), nn.GELU(), nn.Linear(nh, dim))

    def forward(self, x):
        x = x + self.attn(self.n1(x))
        return x + self.mlp(self.n2(x))


class VisionTransformer(nn.Module):
    "`body` (everything up to the last norm) and `head`, so that a learner could freeze one of them"

    def __init__(self, image_size=32, patch_size=4, in_channels=3, num_classes=10, dim=192, depth=9, heads=8,
                 mlp_ratio=4.0, dropout=0.1, positions="learned", pool="cls"):
        super().__init__()
        store_attr()
        n = (image_size // patch_size) ** 2 + (pool == "cls")
        self.embed = PatchEmbedding(image_size, patch_size, in_channels, dim)
        self.cls = nn.Parameter(torch.randn(1, 1, dim) * 0.02) if pool == "cls" else None
        # `positions` is already the name of the argument
        self.pos = (
            nn.Parameter(torch.randn(1, n, dim) * 0.02)
            if positions == "learned"
            else nn.Parameter(sinusoidal_positions(n, dim)[None], requires_grad=False)
        )
        self.body = nn.ModuleList(EncoderBlock(dim, heads, mlp_ratio, dropout) for _ in range(depth))
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, num_classes)
        self.apply(self._init)

    @staticmethod
    def _init(m):
        if isinstance(m, nn.Linear):
            nn.init.xavier_uniform_(m.weight)
            nn.init.zeros_(m.bias)

    def activations(self, images):
        "What enters each block, and what leaves the last one"
        x = self.embed(images)
        if self.cls is not None:
            x = torch.cat([self.cls.expand(len(x), -1, -1), x], 1)
        acts = L([x + self.pos])
        for b in self.body:
            acts.append(b(acts[-1]))
        return acts

    def forward(self, images):
        x = self.norm(self.activations(images)[-1])
        return self.head(x[:, 0] if self.cls is not None else x.mean(1))

    def attention(self, images):
        last = self.body[-1]
        return last.attn(last.n1(self.activations(images)[-2]), return_weights=True)[1]


class ConvLayer(nn.Sequential):
    "conv, batch norm and, unless `act=False`, a ReLU"

    def __init__(self, ni, nf, ks=3, stride=1, act=True):
        super().__init__(nn.Conv2d(ni, nf, ks, stride, ks // 2, bias=False), nn.BatchNorm2d(nf))
        if act:
            self.append(nn.ReLU())


class BasicBlock(nn.Module):
    def __init__(self, in_channels, channels, stride=1):
        super().__init__()
        self.convs = nn.Sequential(ConvLayer(in_channels, channels, stride=stride), ConvLayer(channels, channels, act=False))
        change = in_channels != channels or stride != 1
        self.idpath = ConvLayer(in_channels, channels, 1, stride, act=False) if change else noop
        self.act = nn.ReLU()

    def forward(self, x):
        return self.act(self.convs(x) + self.idpath(x))


class ResNet18(nn.Sequential):
    def __init__(self, num_classes=10, width=64):
        nfs = [width] + [width * 2**i for i in range(4)]
        groups = [
            nn.Sequential(BasicBlock(nfs[i], nfs[i + 1], 1 if i == 0 else 2), BasicBlock(nfs[i + 1], nfs[i + 1]))
            for i in range(4)
        ]
        super().__init__(
            ConvLayer(3, width), *groups, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(nfs[-1], num_classes)
        )


def parameter_table(model):
    "Parameters of `model` itself first, then one row for each child; what is shared counts once"
    seen, rows = set(), []

    def _count(ps):
        new = {id(p): p for p in ps if id(p) not in seen}
        seen.update(new)
        return sum(p.numel() for p in new.values())

    for name, p in model.named_parameters(recurse=False):
        rows.append((name, _count([p])))
    for name, child in model.named_children():
        rows.append((f"{name} ({type(child).__name__})", _count(child.parameters())))
    return rows
