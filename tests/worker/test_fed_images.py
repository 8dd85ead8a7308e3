"""What a model is fed in training, beside what the grader's loader gives."""

import copy
import pickle
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from grader.worker.fed_images import MOST_BATCHES, FedImages

IMAGES = torch.rand(32, 1, 8, 8, generator=torch.Generator().manual_seed(1))


def fed(change: Callable[[Tensor], Tensor], model: nn.Module | None = None) -> FedImages:
    """What was seen of a model that learns from the images after a change."""
    model = model or nn.Identity()
    watched = FedImages(model)
    for batch in IMAGES.split(8):
        model(change(batch))
    return watched


def test_images_as_they_are_given_are_the_same() -> None:
    assert not fed(lambda batch: batch).differ_from(IMAGES)


@pytest.mark.parametrize(
    "change",
    [
        lambda batch: batch.flip(3),
        lambda batch: 0.7 * batch + 0.3 * batch.flip(0),  # mixup
        lambda batch: nn.functional.pad(batch, (2, 0, 0, 2))[..., :8, :8],  # a crop
        lambda batch: (batch * 1.2).clamp(0, 1),
    ],
    ids=["flip", "mixup", "crop", "brighter"],
)
def test_augmented_images_are_the_same(change: Callable[[Tensor], Tensor]) -> None:
    assert not fed(change).differ_from(IMAGES)


@pytest.mark.parametrize(
    "change",
    [
        lambda batch: (batch - 0.5) / 0.5,
        lambda batch: (batch - 0.485) / 0.229,
        lambda batch: 255 * batch,
        lambda batch: 1 - 2 * batch,
        lambda batch: nn.functional.interpolate(batch, scale_factor=2),
    ],
    ids=["to -1..1", "standardized", "bytes", "inverted", "enlarged"],
)
def test_otherwise_prepared_images_are_others(change: Callable[[Tensor], Tensor]) -> None:
    assert fed(change).differ_from(IMAGES)


def test_nothing_is_known_of_a_model_that_is_only_asked() -> None:
    assert not fed(lambda batch: 255 * batch, nn.Identity().eval()).differ_from(IMAGES)


def test_odd_batches_and_empty_ones_are_no_affair_of_ours() -> None:
    model = nn.Identity()
    watched = FedImages(model)
    for batch in (None, "text", [IMAGES], torch.zeros(3), torch.zeros(0, 1, 8, 8)):
        model(batch)
    assert not watched.differ_from(IMAGES)


def test_a_watched_model_can_be_copied_and_saved() -> None:
    """A copy is watched as well, one that is loaded is not; the last batches are what counts."""
    model = nn.Identity()
    watched = FedImages(model)
    loaded = pickle.loads(pickle.dumps(model))  # noqa: S301 - our own
    loaded(255 * IMAGES)
    assert not watched.differ_from(IMAGES)
    copy.deepcopy(model)(255 * IMAGES)
    assert watched.differ_from(IMAGES)
    for _ in range(2 * MOST_BATCHES):
        model(IMAGES)
    assert not watched.differ_from(IMAGES)
