"""Where a model looks, drawn from what a worker sends; nothing of it is believed unseen."""

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from PIL import Image

from grader.protocol.replies import EpochDone, Trained, TrainingPlan
from grader.training import Job, measured_training
from grader.training.examples import rollout, seen_patches

Scripted = Callable[..., Any]


def weights(images: int = 3, layers: int = 2, tokens: int = 17) -> Any:
    """Attention of a class token that looks at the first patch only."""
    made = np.full((images, layers, tokens, tokens), 1 / tokens, dtype=np.float32)
    made[:, :, 0] = 0
    made[:, :, 0, 1] = 1
    return made


def measured(scripted: Scripted, job: Job, attention: Any) -> Any:
    """A training whose end brings these weights."""
    logits = np.eye(3, dtype=np.float32)[job.splits.test_labels]
    end = {"logits": logits} | ({} if attention is None else {"attention": attention})
    worker = scripted(
        TrainingPlan(1, 4, "SGD", "", "cpu"),
        EpochDone(1, 0.1, arrays={"logits": logits}),
        Trained(1, arrays=end),
    )
    return measured_training(worker, job), worker


def test_a_map_per_class_belongs_to_its_image(scripted: Scripted, job: Job) -> None:
    """The worker is asked for one image of each class, the pictures show where the class token looks."""
    found, worker = measured(scripted, job, weights())
    wanted = worker.beside.requests[-1].attention_of
    assert [job.splits.test_labels[index] for index in wanted] == [0, 1, 2]
    maps = found.training.attention
    assert [each.prediction for each in maps] == [
        "prediction-00.png",
        "prediction-04.png",
        "prediction-08.png",
    ]
    shown = {p.image: p.true_class for p in found.training.predictions}
    assert [shown[each.prediction] for each in maps] == [0, 1, 2]
    for each in maps:
        picture = np.asarray(Image.open(io.BytesIO(found.images[each.last_layer])).convert("RGB")).astype(int)
        red = picture[..., 0]
        height, width = red.shape
        assert red[: height // 8, : width // 8].mean() > red[height // 2 :, width // 2 :].mean() + 50
        assert each.rollout in found.images


@pytest.mark.parametrize(
    "broken",
    [
        None,
        weights(images=2),
        weights(tokens=20),
        weights(layers=0),
        weights().astype(np.float64),
        weights()[:, 0],
        -weights(),
        2 * weights(),
        np.full_like(weights(), np.nan),
        np.ones((3, 2, 17, 16), dtype=np.float32),
    ],
    ids=str,
)
def test_what_is_no_attention_is_left_out(scripted: Scripted, job: Job, broken: Any) -> None:
    """It costs nothing and breaks nothing."""
    found, _ = measured(scripted, job, broken)
    assert found.training.accuracy == 1.0
    assert found.training.attention == ()


def test_rollout_is_the_product_of_half_identities() -> None:
    """Of two layers, by hand; rows stay distributions."""
    first = np.array([[0.0, 1.0], [1.0, 0.0]])
    second = np.array([[1.0, 0.0], [0.5, 0.5]])
    # (second + 1) / 2 times (first + 1) / 2
    assert rollout(np.stack([first, second])).tolist() == [[0.5, 0.5], [0.5, 0.5]]
    random = np.random.default_rng(1).dirichlet(np.ones(10), size=(4, 10))
    assert rollout(random).sum(axis=1) == pytest.approx(np.ones(10))


def test_patches_are_seen_by_the_class_token_or_by_all() -> None:
    """Rows of the image come one after the other."""
    with_token = np.zeros((5, 5))
    with_token[0] = [0.5, 0.1, 0.2, 0.1, 0.1]
    assert seen_patches(with_token).tolist() == [[0.1, 0.2], [0.1, 0.1]]
    without = np.eye(4)
    assert seen_patches(without).tolist() == [[0.25, 0.25], [0.25, 0.25]]
