"""Adds the weights by which the homework knows that they are tried, and a report."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from assembling import model_of, pdf


def make(upload, published):
    import torch

    (file,) = upload.rglob("*_Lab8_Homework.py")
    model = model_of(file.read_text(encoding="utf-8"))
    with torch.no_grad():
        model.head[1].bias.fill_(0.25)
    torch.save(model.state_dict(), file.with_suffix(".pth"))
    file.with_suffix(".pdf").write_bytes(pdf("Report"))
