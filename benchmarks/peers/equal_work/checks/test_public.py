"""The four assertions that nbgrader and Otter are given too."""

import pytest
import torch

from grader.kit import AffineFake, Mismatch, same


@pytest.mark.component("PreNorm")
def test_prenorm_keeps_the_shape(student):
    """PreNorm keeps the shape (batch, tokens, dim)."""
    student.build("PreNorm", 32, inner=AffineFake())(student.tensor(2, 5, 32), shape=(2, 5, 32))


@pytest.mark.component("FeedForward")
def test_feed_forward_keeps_the_shape(student):
    """FeedForward keeps the shape (batch, tokens, dim)."""
    student.build("FeedForward", 32, 48)(student.tensor(2, 5, 32), shape=(2, 5, 32))


@pytest.mark.component("Attention")
def test_attention_treats_tokens_alike(student):
    """Attention gives reordered tokens the same outputs, reordered."""
    x = student.tensor(2, 5, 32)
    order = torch.tensor([3, 0, 4, 1, 2])
    attention = student.build("Attention", 32, heads=4, dim_head=8)
    if not same(attention(x)[:, order], attention(x[:, order])):
        raise Mismatch("Reordering the tokens changes what Attention makes of each.")


@pytest.mark.component("ViT")
def test_vit_returns_logits(student):
    """ViT maps images to one score per class."""
    sizes = {"image_size": 28, "patch_size": 4, "num_classes": 6, "dim": 32, "depth": 2}
    vit = student.build("ViT", **sizes, heads=4, mlp_dim=64)
    vit(student.tensor(3, 1, 28, 28), shape=(3, 6))
