"""Shares, partners and boxes of mixed images are found from the images, and what is not a mix is told."""

from typing import Any

import numpy as np
import pytest
import torch

from grader.kit import Mismatch, cutmix_of, mixup_of, numbered_images

RANDOM = np.random.default_rng(2)
IMAGES = RANDOM.normal(size=(7, 3, 8, 6))
ORDER = np.array([3, 0, 2, 6, 5, 4, 1])  # 2 is its own partner; 4 and 5 are each other's


@pytest.mark.parametrize("share", [0.02, 0.3, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("kind", ["array", "tensor"])
def test_one_share_for_all(share: float, kind: str) -> None:
    images: Any = IMAGES if kind == "array" else torch.from_numpy(IMAGES).float()
    found = mixup_of(share * images + (1 - share) * images[ORDER], images)
    assert found.share == pytest.approx(share, abs=1e-4)
    assert found.partners.tolist() == ORDER.tolist()
    assert found.shares[2] == 1.0


def test_a_share_for_each() -> None:
    shares = RANDOM.uniform(0.1, 0.9, 7)
    mixed = shares[:, None, None, None] * IMAGES + (1 - shares)[:, None, None, None] * IMAGES[ORDER]
    found = mixup_of(mixed, IMAGES)
    shares[2] = 1.0
    assert found.shares == pytest.approx(shares)
    with pytest.raises(Mismatch, match="not all mixed by the same share"):
        _ = found.share


def test_a_share_beyond_one_is_seen() -> None:
    """Whether it may be is the check's business."""
    assert mixup_of(1.4 * IMAGES - 0.4 * IMAGES[ORDER], IMAGES).share == pytest.approx(1.4)


def test_nothing_mixed_in() -> None:
    found = mixup_of(IMAGES, IMAGES)
    assert found.share == 1.0
    assert found.partners.tolist() == list(range(7))


def test_everything_is_the_other_image() -> None:
    found = mixup_of(IMAGES[ORDER], IMAGES)
    assert found.partners.tolist() == ORDER.tolist()
    assert found.share == pytest.approx(0.0)


@pytest.mark.parametrize(
    "made",
    [
        lambda images: 0.5 * images[[1, 2, 3, 4, 5, 6, 0]] + 0.5 * images[[2, 3, 4, 5, 6, 0, 1]],
        lambda images: 0.5 * images + 0.25 * images[ORDER] + 0.25 * images[::-1],
        lambda images: 0.7 * images + 0.7 * images[ORDER],
        lambda images: images + 0.01,
    ],
    ids=["without its own", "of three", "more than one", "brighter"],
)
def test_what_is_no_mix_of_two_is_told(made: Any) -> None:
    with pytest.raises(Mismatch, match=r"Image \d of those that were mixed is not share"):
        mixup_of(made(IMAGES), IMAGES)


def test_another_shape_is_told() -> None:
    with pytest.raises(Mismatch, match="became mixed images of shape"):
        mixup_of(IMAGES[:3], IMAGES)


def cut(box: tuple[int, int, int, int], order: Any = ORDER, images: Any = IMAGES) -> Any:
    top, bottom, left, right = box
    made = images.copy()
    made[:, :, top:bottom, left:right] = images[order][:, :, top:bottom, left:right]
    return made


@pytest.mark.parametrize("box", [(0, 3, 0, 2), (5, 8, 4, 6), (2, 3, 1, 2), (0, 8, 0, 6)])
def test_the_box_its_area_and_its_partners(box: tuple[int, int, int, int]) -> None:
    """At an edge too, where it was clipped."""
    found = cutmix_of(cut(box), IMAGES)
    assert found.box == box
    assert found.share == pytest.approx(1 - (box[1] - box[0]) * (box[3] - box[2]) / 48)
    assert found.partners.tolist() == ORDER.tolist()
    assert cutmix_of(torch.from_numpy(cut(box)), torch.from_numpy(IMAGES)).box == box


def test_an_empty_box() -> None:
    found = cutmix_of(IMAGES, IMAGES)
    assert (found.box, found.share) == (None, 1.0)


def test_boxes_that_differ_are_told() -> None:
    made = cut((1, 4, 1, 3))
    made[5] = cut((1, 4, 2, 4))[5]
    with pytest.raises(
        Mismatch, match=r"rows 1 to 3, columns 1 to 2 of image 0, rows 1 to 3, columns 2 to 3"
    ):
        cutmix_of(made, IMAGES)


def test_what_is_no_box_is_told() -> None:
    made = cut((1, 4, 1, 3))
    made[0, :, 6, 5] = 9.0
    with pytest.raises(Mismatch, match="changed in image 0 is not a box"):
        cutmix_of(made, IMAGES)


@pytest.mark.parametrize(
    "fill",
    [
        0.0,
        lambda images: images[ORDER][:, :, 0:3, 0:2],
        lambda images: images.mean(0, keepdims=True)[:, :, :3, :2],
    ],
)
def test_a_box_that_is_not_from_an_image_at_the_same_place_is_told(fill: Any) -> None:
    made = IMAGES.copy()
    made[:, :, 2:5, 2:4] = fill(IMAGES) if callable(fill) else fill
    with pytest.raises(Mismatch, match="does not match that of any single image at the same place"):
        cutmix_of(made, IMAGES)


def test_rigged_images_can_be_mixed() -> None:
    images = numbered_images(6, 3, (3, 12, 9))
    order = np.array([1, 2, 3, 4, 5, 0])
    assert (
        mixup_of(np.float32(0.3) * images + np.float32(0.7) * images[order], images).partners.tolist()
        == order.tolist()
    )
