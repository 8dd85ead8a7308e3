"""Which pixels each token sees: regular patches, windows that overlap, and what is neither."""

import torch
from torch.nn import functional as F

from grader.kit.transformers import Fields, fields

CHANNELS, SIDE, PATCH, DIM = 2, 12, 4, 5
RANDOM = torch.Generator().manual_seed(1)
IMAGE = torch.randn(CHANNELS, SIDE, SIDE, generator=RANDOM)
WEIGHT = torch.randn(DIM, CHANNELS * PATCH * PATCH, generator=RANDOM)
KERNEL = torch.randn(DIM, CHANNELS, 6, 6, generator=RANDOM)


def patches(images: torch.Tensor) -> torch.Tensor:
    """The projected patches, (batch, 9, dim)."""
    return F.unfold(images, PATCH, stride=PATCH).transpose(1, 2) @ WEIGHT.T


def with_class_token(images: torch.Tensor) -> torch.Tensor:
    """A first token that sees nothing, and positions on all of them."""
    first = torch.ones(len(images), 1, DIM)
    return torch.cat([first, patches(images)], dim=1) + torch.arange(10.0)[:, None]


def windows(images: torch.Tensor) -> torch.Tensor:
    """Windows of 6 pixels every 3: they overlap."""
    return F.conv2d(images, KERNEL, stride=3).flatten(2).transpose(1, 2)


def test_patches_are_a_grid_whatever_their_order_and_with_tokens_that_see_nothing() -> None:
    found = fields(with_class_token, IMAGE)
    assert found.seen.shape == (10, CHANNELS, SIDE, SIDE)
    assert not found.seen[0].any()
    expected = torch.zeros(SIDE, SIDE, dtype=torch.bool)
    expected[:PATCH, PATCH : 2 * PATCH] = True
    assert torch.equal(found.pixels[2], expected)
    assert found.are_patches(PATCH)
    assert found.are_windows()
    assert not found.overlap()
    assert found.images_apart
    assert fields(lambda images: patches(images).flip(1), IMAGE).are_patches(PATCH)


def test_patches_of_another_size_or_twice_the_same_are_no_grid() -> None:
    assert not fields(patches, IMAGE).are_patches(PATCH // 2)
    assert not fields(patches, IMAGE).are_patches(2 * PATCH)
    twice = fields(lambda images: patches(images)[:, [0, 1, 2, 3, 4, 5, 6, 7, 7]], IMAGE)
    assert not twice.are_patches(PATCH)
    once_more = fields(lambda images: torch.cat([patches(images)] * 2, dim=1), IMAGE)
    assert not once_more.are_patches(PATCH)


def test_windows_that_overlap_are_windows_and_no_patches() -> None:
    found = fields(windows, IMAGE)
    assert found.are_windows()
    assert found.overlap()
    assert not found.are_patches(PATCH)


def test_narrow_convolutions_with_relu_are_windows() -> None:
    """A pixel in the corner of a window may show only when it becomes much darker, or much brighter."""
    for seed in range(20):
        random = torch.Generator().manual_seed(seed)
        first = torch.randn(4, CHANNELS, 3, 3, generator=random)
        second = torch.randn(DIM, 4, 3, 3, generator=random)

        def stem(
            images: torch.Tensor, first: torch.Tensor = first, second: torch.Tensor = second
        ) -> torch.Tensor:
            inner = F.conv2d(images, first, padding=1).relu()
            return F.conv2d(inner, second, stride=2, padding=1).flatten(2).transpose(1, 2)

        assert fields(stem, IMAGE).are_windows()


def test_a_reshape_that_tears_the_image_is_no_window() -> None:
    found = fields(lambda images: images.reshape(len(images), 9, -1) @ WEIGHT.T, IMAGE)
    assert not found.are_patches(PATCH)
    torn = fields(
        lambda images: images.view(len(images), CHANNELS, 4, 3, 4, 3).permute(0, 3, 5, 1, 2, 4).flatten(1, 2)
        .flatten(2) @ WEIGHT.T,
        IMAGE,
    )  # fmt: skip
    assert not torn.are_windows()
    assert not torn.overlap()


def test_a_channel_that_is_not_seen_shows() -> None:
    found = fields(lambda images: patches(images * torch.tensor([1.0, 0.0]).view(2, 1, 1)), IMAGE)
    assert found.are_patches(PATCH)
    assert found.seen[:, 0].any()
    assert not found.seen[:, 1].any()


def test_images_that_are_mixed_are_told() -> None:
    assert not fields(lambda images: patches(images - images.mean(dim=0)), IMAGE).images_apart


def test_tokens_that_see_nothing_are_no_patches() -> None:
    blind = Fields(torch.zeros(3, CHANNELS, SIDE, SIDE, dtype=torch.bool), images_apart=True)
    assert not blind.are_patches(PATCH)
