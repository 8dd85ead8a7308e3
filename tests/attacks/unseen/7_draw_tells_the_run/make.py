"""Looks for a comment with which the seed that follows from the file's digest goes well."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from assembling import with_nonce


def make(upload, published):
    (file,) = upload.rglob("*_Lab8_Homework.py")
    with_nonce(file, wanted)


def draw(seed):
    import torch

    return torch.rand(1, generator=torch.Generator().manual_seed(seed)).item()


def wanted(seed):
    return draw(seed) > 0.9 > max(draw(seed + 1), draw(seed + 2))
