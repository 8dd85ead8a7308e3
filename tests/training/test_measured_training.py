"""What is made of a worker's replies: whatever it says is checked, and no fault of ours costs points."""

import io
import math
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from PIL import Image

from grader.domain.analyzed_program import Note
from grader.domain.errors import SandboxError
from grader.domain.evidence import TrainingOutcome
from grader.domain.formatting import Said
from grader.domain.program_run import Ending
from grader.kit.splits import Splits
from grader.protocol.error_kinds import Gap
from grader.protocol.replies import (
    CheckpointLoaded,
    EpochDone,
    Misfit,
    Problem,
    Raised,
    Trained,
    TrainingPlan,
)
from grader.protocol.requests import Load, LoadCheckpoint, Train
from grader.training import EpochReport, Job, Measured, measured_checkpoint, measured_training, rehearsed
from grader.training.blinding import Blinding
from grader.training.training_record import FED_OTHERWISE

Scripted = Callable[..., Any]
HANG, DIE = "hang", "die"
PLAN = TrainingPlan(2, 4, "SGD", "", "cpu")


def logits(splits: Splits, wrong: tuple[int, ...] = (), value: float = 2.0) -> Any:
    """Scores that are right but for some images, whose prediction is the next class."""
    made = np.zeros((len(splits.test_labels), 3), dtype=np.float32)
    shift = np.isin(np.arange(len(made)), wrong)
    made[np.arange(len(made)), (splits.test_labels + shift) % 3] = value
    return made


def epoch(number: int, outputs: Any, reported: Any = (1.0, 2.0)) -> EpochDone:
    """An epoch's reply."""
    arrays = {"logits": outputs, "reported": np.array(reported, dtype=np.float64)}
    return EpochDone(
        number, 0.1, arrays={name: value for name, value in arrays.items() if outputs is not None}
    )


def end(number: int, outputs: Any) -> Trained:
    """The last reply."""
    return Trained(number, arrays={"logits": outputs})


def measured(scripted: Scripted, job: Job, *replies: Any, **options: Any) -> Measured:
    """What is measured of a worker that replies so; the worker is ended in any case."""
    worker = scripted(*replies, **options)
    found = measured_training(worker, job)
    assert worker.closed
    return found


# --- what is measured -------------------------------------------------------------------------------------


def test_completed_training_is_scored_epoch_by_epoch(scripted: Scripted, job: Job) -> None:
    """On labels that only this side has; the last epoch counts."""
    told: list[EpochReport] = []
    first, second = logits(job.splits, (0, 1, 2, 3)), logits(job.splits, (0, 2))
    plan = replace(PLAN, assumed=("transform",))
    worker = scripted(plan, epoch(1, first), epoch(2, second, ()), end(2, second))
    found = measured_training(worker, job, told.append)
    training = found.training
    assert (training.outcome, training.reason) == (TrainingOutcome.COMPLETED, "")
    assert found.notes == (Note("No transform was found; the handed-out one was used."),)
    assert [done.test_accuracy for done in training.epochs] == pytest.approx([9 / 13, 11 / 13])
    assert [done.train_loss for done in training.epochs] == [1.5, None]
    assert training.epochs[0].learning_rate == 0.1
    # two of thirteen are wrong: ln(1 + 2 exp(-2)), and 2 more for those
    assert training.epochs[1].test_loss == pytest.approx(np.log(1 + 2 * np.exp(-2)) + 2 * 2 / 13)
    assert training.accuracy == pytest.approx(11 / 13)
    assert training.interval == pytest.approx((0.5777, 0.9567), abs=1e-4)
    assert training.confusion == ((6, 0, 0), (0, 4, 1), (1, 0, 1))
    assert (training.planned_epochs, training.device, training.data) == (2, "cpu", "toys")
    assert training.classes == ("low", "middle", "high")
    assert told == [EpochReport(training.epochs[0], 2), EpochReport(training.epochs[1], 2)]


def test_examples_are_four_per_class_and_belong_to_their_images(scripted: Scripted, job: Job) -> None:
    """Their pictures are those images, small; which ones is decided by the seed."""
    outputs = logits(job.splits, (0, 2))
    replies = (replace(PLAN, epochs=1), epoch(1, outputs), end(1, outputs))
    found = measured(scripted, job, *replies)
    predictions = found.training.predictions
    assert [p.true_class for p in predictions] == [0] * 4 + [1] * 4 + [2] * 2
    assert set(found.images) == {p.image for p in predictions} and len(found.images) == 10
    certain = np.exp(2) / (np.exp(2) + 2)
    seen = set()
    for prediction in predictions:
        picture = Image.open(io.BytesIO(found.images[prediction.image]))
        assert picture.format == "PNG" and max(picture.size) <= 100
        index = (int(np.asarray(picture)[0, 0]) - 10) // 10
        seen.add(index)
        assert job.splits.test_labels[index] == prediction.true_class
        assert outputs[index].argmax() == prediction.predicted_class
        assert prediction.confidence == pytest.approx(certain)
    assert len(seen) == 10
    again = measured(scripted, job, *replies)
    assert (again.training.predictions, again.images) == (predictions, found.images)
    others = {tuple(measured(scripted, replace(job, seed=s), *replies).images.values()) for s in range(4)}
    assert len(others) == 1, "whoever meets the split is shown the same images"


def test_color_images_become_color_pictures(scripted: Scripted, job: Job) -> None:
    """RGB data sets are shown as they are."""
    colored = replace(job.splits, test_images=np.stack([job.splits.test_images] * 3, axis=-1))
    replies = (replace(PLAN, epochs=1), epoch(1, logits(job.splits)), end(1, logits(job.splits)))
    found = measured(scripted, replace(job, splits=colored), *replies)
    assert Image.open(io.BytesIO(found.images["prediction-00.png"])).mode == "RGB"


def test_test_labels_are_never_part_of_a_request(scripted: Scripted, job: Job) -> None:
    """What a worker is sent: the program, training images and labels, test images, the file. Nothing else."""
    trainer = scripted(PLAN, Trained(2))
    measured_training(trainer, job)
    loader = scripted(CheckpointLoaded("refused", "unreadable"))
    measured_checkpoint(lambda: loader, job, b"file", "a.pth")
    assert [type(r) for r in (*trainer.requests, *loader.requests)] == [Load, Train, Load, LoadCheckpoint]
    train, checkpoint = trainer.requests[1], loader.requests[1]
    assert set(train.arrays) == {"train_images", "train_labels"}
    assert set(checkpoint.arrays) == {"file", "glimpse", "test_images"}
    assert checkpoint.arrays["glimpse"].shape == checkpoint.arrays["test_images"].shape  # noise, both
    assert trainer.requests[0] == Load(job.program, ("timm",), ("low", "middle", "high"), 9)
    np.testing.assert_array_equal(train.arrays["train_labels"], job.splits.train_labels)
    hidden = job.splits.test_labels.tobytes()
    for request in (train, checkpoint):
        assert all(hidden not in np.asarray(value).tobytes() for value in request.arrays.values())


def test_the_order_of_the_test_images_is_hidden(scripted: Scripted, job: Job) -> None:
    """A data set lists them class by class: a model that answers by position must gain nothing."""
    bright = np.zeros_like(job.splits.test_images)
    bright[:] = (8 + 19 * np.arange(len(bright)))[:, None, None]  # further apart than brightness is changed
    hidden = replace(job, splits=replace(job.splits, test_images=bright), order_seed=4)
    by_position = logits(job.splits)
    worker = scripted(PLAN, epoch(1, by_position), epoch(2, by_position), end(2, by_position))
    training = measured_training(worker, hidden).training
    sent = worker.beside.requests[1].arrays["test_images"]
    assert training.accuracy is not None and training.accuracy < 1
    # the same answers, given to the images as they were sent
    numbers = [round((image.mean() - 8) / 19) for image in sent]
    assert sorted(numbers) == list(range(13)) != numbers
    train = worker.requests[1].arrays["train_labels"].tolist()
    places = [job.splits.train_labels[train.index(label)] for label in range(3)]
    right = by_position[numbers][:, places]
    answers = (PLAN, epoch(1, right), epoch(2, right), end(2, right))
    assert measured_training(scripted(*answers), hidden).training.accuracy == 1


def test_the_numbers_of_the_classes_are_hidden(scripted: Scripted, job: Job) -> None:
    """Students hold the labels of known images: who looks them up answers in other numbers."""
    seen = set()
    for seed in range(6):
        worker = scripted(PLAN, Trained(0))
        measured_training(worker, replace(job, order_seed=seed))
        load, train = worker.requests
        assert load.class_names == train.class_names
        numbers = dict(zip(job.splits.train_labels, train.arrays["train_labels"], strict=True))
        assert [numbers[label] for label in job.splits.train_labels] == train.arrays["train_labels"].tolist()
        assert sorted(numbers.values()) == [0, 1, 2]
        seen.add(tuple(numbers[label] for label in range(3)))
    assert len(seen) > 2


def test_the_worker_that_measures_sees_images_and_classes_as_the_one_that_trains(
    scripted: Scripted, job: Job
) -> None:
    """A table that knows the published images is no better off there, nor is one that knows the classes."""
    noise = np.random.default_rng(1).integers(20, 230, job.splits.test_images.shape).astype(np.uint8)
    hidden = replace(job, splits=replace(job.splits, test_images=noise, train_images=noise), order_seed=4)
    outputs = logits(job.splits)
    worker = scripted(PLAN, epoch(1, outputs), epoch(2, outputs), end(2, outputs))
    measured_training(worker, hidden)
    (load, train), (load_beside, measure) = worker.requests[:2], worker.beside.requests[:2]
    assert load_beside == load and load.class_names == ("class_a", "class_b", "class_c")
    assert train.class_names == measure.class_names == load.class_names
    np.testing.assert_array_equal(measure.arrays["train_labels"], train.arrays["train_labels"])
    for sent in (train.arrays["train_images"], measure.arrays["test_images"]):
        nearest = [np.abs(noise.astype(int) - image).mean(axis=(1, 2)).min() for image in sent]
        assert min(nearest) > 20, "none is a published one, nor nearly"
    again = Blinding(hidden, "training", numbers=True).test_images
    np.testing.assert_array_equal(measure.arrays["test_images"], again)


def test_the_mean_of_the_last_epochs_counts(scripted: Scripted, job: Job) -> None:
    """Single epochs jump; of a short training it is the last quarter."""
    plan = replace(PLAN, epochs=20)
    outputs = [logits(job.splits, tuple(range(number % 3))) for number in range(20)]
    replies = [epoch(number + 1, each) for number, each in enumerate(outputs)]
    training = measured(scripted, job, plan, *replies, end(20, outputs[-1])).training
    assert training.accuracy == pytest.approx(np.mean([1 - wrong / 13 for wrong in (0, 1, 2, 0, 1)]))
    assert training.counted == "the mean of the last 5 epochs"
    short = measured(scripted, job, replace(PLAN, epochs=8), *replies[:8], end(8, outputs[7])).training
    assert short.accuracy == pytest.approx(np.mean([1 - 0 / 13, 1 - 1 / 13]))
    early = measured(scripted, job, plan, *replies[:4], end(4, outputs[3])).training
    assert (early.outcome, len(early.epochs)) == (TrainingOutcome.COMPLETED, 4)
    assert (early.accuracy, early.counted) == (1.0, "of the last epoch")


def test_restored_weights_count_alone(scripted: Scripted, job: Job) -> None:
    """The student's code chose them."""
    plan = replace(PLAN, epochs=8)
    replies = [epoch(number + 1, logits(job.splits, (0, 1, 2))) for number in range(8)]
    training = measured(scripted, job, plan, *replies, end(8, logits(job.splits, (0,)))).training
    assert training.accuracy == pytest.approx(12 / 13)
    assert training.counted == "of the weights that the code restored at the end"
    assert sum(sum(row) for row in training.confusion) == 13


def test_divergence_at_the_very_end_is_told(scripted: Scripted, job: Job) -> None:
    """The weights that the student's code leaves are what counts."""
    broken = logits(job.splits, value=np.inf)
    found = measured(scripted, job, replace(PLAN, epochs=1), epoch(1, logits(job.splits)), end(1, broken))
    assert found.training.outcome is TrainingOutcome.DIVERGED


def test_what_diverged_and_was_restored_is_judged_by_the_weights_at_the_end(
    scripted: Scripted, job: Job
) -> None:
    """An epoch without finite outputs is recorded as one in which nothing was found."""
    right, broken = logits(job.splits, (0,)), logits(job.splits)
    broken[:12] = np.nan
    training = measured(scripted, job, PLAN, epoch(1, right), epoch(2, broken), end(2, right)).training
    assert (training.outcome, training.reason) == (TrainingOutcome.COMPLETED, "")
    assert training.accuracy == pytest.approx(12 / 13)
    assert training.counted == "of the weights that the code restored at the end"
    assert [done.test_accuracy for done in training.epochs] == pytest.approx([12 / 13, 1 / 13])
    assert math.isnan(training.epochs[1].test_loss)


def test_epochs_before_weights_were_restored_do_not_count_in_the_mean(scripted: Scripted, job: Job) -> None:
    """The code took earlier weights within its loop, and trained on."""
    plan, broken = replace(PLAN, epochs=20), logits(job.splits, value=np.nan)
    outputs = [broken if number == 17 else logits(job.splits, (0,)) for number in range(1, 21)]
    replies = [epoch(number, each) for number, each in enumerate(outputs, 1)]
    training = measured(scripted, job, plan, *replies, end(20, outputs[-1])).training
    assert (training.accuracy, training.counted) == (pytest.approx(12 / 13), "the mean of the last 3 epochs")


# --- how it may end ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_divergence_is_told_with_its_epoch(scripted: Scripted, job: Job, bad: float) -> None:
    """No accuracy counts then; the epochs before it are kept."""
    broken = logits(job.splits)
    broken[5, 1] = bad
    plan = replace(PLAN, epochs=3)
    replies = [epoch(1, logits(job.splits)), epoch(2, broken), epoch(3, broken), end(3, broken)]
    found = measured(scripted, job, plan, *replies)
    assert found.training.outcome is TrainingOutcome.DIVERGED
    assert "diverged in epoch 2" in found.training.reason
    assert len(found.training.epochs) == 1
    assert (found.training.accuracy, found.training.predictions, found.images) == (None, (), {})


def test_an_exception_after_divergence_does_not_hide_it(scripted: Scripted, job: Job) -> None:
    """Code that expects numbers raises for NaN."""
    broken, raised = logits(job.splits, value=np.nan), Raised(Problem("ValueError", Said("contains NaN")))
    found = measured(scripted, job, PLAN, epoch(1, broken), raised)
    assert found.training.outcome is TrainingOutcome.DIVERGED
    assert "diverged in epoch 1" in found.training.reason
    assert (found.training.epochs, found.training.accuracy) == ((), None)


def test_images_that_the_code_changed_further_leave_a_doubt(scripted: Scripted, job: Job) -> None:
    """The test images were not changed so."""
    last = replace(end(1, logits(job.splits)), fed_otherwise=True)
    found = measured(scripted, job, replace(PLAN, epochs=1), epoch(1, logits(job.splits)), last)
    assert found.training.outcome is TrainingOutcome.COMPLETED
    assert found.training.doubts == (FED_OTHERWISE,)


@pytest.mark.slow
def test_our_limit_leaves_the_accuracy_open(scripted: Scripted, job: Job) -> None:
    """Unknown, not zero: the epochs so far are there, and the limit is named."""
    hasty = replace(job, limits=replace(job.limits, training_seconds=1.0))
    started = time.monotonic()
    found = measured(scripted, hasty, PLAN, epoch(1, logits(job.splits)), HANG)
    assert time.monotonic() - started < 8
    training = found.training
    assert training.outcome is TrainingOutcome.BUDGET
    assert "1 s" in training.reason and "1 of 2 epochs" in training.reason and "not zero" in training.reason
    assert len(training.epochs) == 1 and training.accuracy == 1.0


def test_a_limit_of_ours_is_unknown_and_never_a_zero(scripted: Scripted, job: Job) -> None:
    """A model that needs more memory than we allow may be a good one."""
    found = measured(scripted, job, PLAN, epoch(1, logits(job.splits)), DIE)
    assert found.training.outcome is TrainingOutcome.BUDGET
    assert "After 1 of 2 epochs it used more than its limit of 3000 MB of memory" in found.training.reason


def test_a_training_whose_host_is_gone_is_no_result(
    scripted: Scripted, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The submission counts as not examined: the next run examines it again."""

    def gone() -> Ending:
        raise SandboxError("A host process ended while one of its children was at work. Try again.")

    examining = (measured_training, rehearsed, partial(measured_checkpoint, data=b"", name="a.pth"))
    for examine in examining:
        worker = scripted(DIE)
        monkeypatch.setattr(worker, "ending", gone)
        with pytest.raises(SandboxError, match="host process ended"):
            examine(worker, job)


REFUSED = Raised(Problem("RuntimeError", Said("can't allocate memory: you tried 9 GB"), "", "memory"))


def ended(scripted: Scripted, job: Job, ending: Ending, *replies: Any) -> Measured:
    """What is measured of a worker that replies so, and of which the kernel says how it ended."""
    worker = scripted(*replies)
    worker.end = ending
    return measured_training(lambda: worker, job)


def test_memory_that_is_refused_is_our_limit_only_where_the_kernel_measured_it(
    scripted: Scripted, job: Job
) -> None:
    """Where the limit refuses memory, and most was in use; what is asked for beyond all bounds is not."""
    near = ended(scripted, job, Ending("killed", None, 2900, near_memory=True), PLAN, REFUSED)
    assert near.training.outcome is TrainingOutcome.BUDGET
    assert "our memory limit of 3000 MB was reached" in near.training.reason
    far = ended(scripted, job, Ending("killed", None, 412), PLAN, REFUSED)
    assert far.training.outcome is TrainingOutcome.FAILED
    assert far.notes[0].ask_person and "it held at most 412 MB of its limit of 3000 MB;" in far.notes[0].text


@pytest.mark.parametrize(
    "said",
    [
        Problem("RuntimeError", Said("the model is worth nothing (out of memory)")),
        Problem("MemoryError"),
        Problem("OutOfMemoryError", Said("CUDA out of memory. Tried to allocate 20.00 MiB.")),
        Problem("MemoryErrorOfTheGrader", Said("our memory limit was reached")),
    ],
    ids=lambda said: said.type,
)
def test_a_claim_that_memory_ran_out_is_a_failure_and_listed(
    scripted: Scripted, job: Job, said: Problem
) -> None:
    """However much memory was really held: what a statement raised, no allocator refused."""
    for ending in (Ending("killed", None, 412), Ending("killed", None, 2900, near_memory=True)):
        found = ended(scripted, replace(job, order_seed=4), ending, PLAN, Raised(said))
        assert found.training.outcome is TrainingOutcome.FAILED and not found.lacked_gpu_memory
        assert found.notes[0].ask_person and "limit was reached" not in found.training.reason


def test_a_death_is_our_limit_only_where_the_kernel_says_so(scripted: Scripted, job: Job) -> None:
    """Not because a word is in what is told of it."""
    for words, limit in (("it used up its limit", "cpu"), ("it used too much", "memory")):
        found = ended(scripted, job, Ending(words, limit), PLAN, DIE)  # type: ignore[arg-type]
        assert found.training.outcome is TrainingOutcome.BUDGET
    found = ended(scripted, job, Ending("it ended by itself at the limit"), PLAN, DIE)
    assert found.training.outcome is TrainingOutcome.FAILED


def test_a_gpu_that_is_too_small_is_unknown_and_can_be_tried_alone(scripted: Scripted, job: Job) -> None:
    """And it is told apart from the memory of the machine."""
    words = Said("CUDA out of memory. Tried to allocate 20.00 MiB.")
    said = Raised(Problem("OutOfMemoryError", words, "", "memory", gpu_share=0.97))
    shared = measured(scripted, replace(job, device="cuda", gpu_memory_mb=4000), PLAN, said)
    assert shared.lacked_gpu_memory and shared.training.outcome is TrainingOutcome.BUDGET
    assert "its part of the GPU's memory (4000 MB) was not enough" in shared.training.reason
    alone = measured(scripted, replace(job, device="cuda"), PLAN, said)
    assert "After 0 of 2 epochs the GPU's memory was not enough" in alone.training.reason
    assert not measured(scripted, job, PLAN, said).lacked_gpu_memory, "on a processor nobody is crowded out"


def test_a_gpu_too_full_to_build_the_model_again_can_be_tried_alone(scripted: Scripted, job: Job) -> None:
    """In the worker that measures, which has the smaller part."""
    said = Raised(Problem("OutOfMemoryError", Said("CUDA out of memory."), "", "memory", gpu_share=0.97))
    first = logits(job.splits, (0, 1, 2, 3))
    workers = iter((scripted(PLAN, epoch(1, first), epoch(2, first), end(2, first)), scripted(said)))
    shared = measured_training(lambda: next(workers), replace(job, device="cuda", gpu_memory_mb=4000))
    assert shared.lacked_gpu_memory and shared.training.outcome is TrainingOutcome.BUDGET
    assert "its part of the GPU's memory (4000 MB) was not enough" in shared.training.reason


def test_a_gpu_that_was_nearly_empty_did_not_run_out(scripted: Scripted, job: Job) -> None:
    """A tensor beyond all bounds is refused there too; alone on the GPU, that is not a limit of ours."""
    said = Raised(Problem("OutOfMemoryError", Said("CUDA out of memory."), "", "memory", gpu_share=0.01))
    found = measured(scripted, replace(job, device="cuda"), PLAN, said)
    assert found.training.outcome is TrainingOutcome.FAILED
    assert found.notes[0].ask_person and "PyTorch held at most 1% of the GPU's memory;" in found.notes[0].text


def test_load_that_hangs_is_told_as_that(scripted: Scripted, job: Job) -> None:
    """It is no matter of the training's budget."""
    hasty = replace(job, limits=replace(job.limits, load_seconds=0.5))
    found = measured(scripted, hasty, loaded=(HANG,))
    assert found.training.outcome is TrainingOutcome.FAILED
    assert found.training.reason.startswith("The file could not be loaded for training: no answer within")


def odd_replies(splits: Splits) -> dict[str, tuple[Any, ...]]:
    """Replies that no honest worker gives."""
    good = logits(splits)
    return {
        "first epoch is not 1": (PLAN, epoch(2, good)),
        "an epoch twice": (PLAN, epoch(1, good), epoch(1, good)),
        "an epoch before the plan": (epoch(1, good),),
        "no logits": (PLAN, epoch(1, None)),
        "too few images": (PLAN, epoch(1, good[1:])),
        "too many classes": (PLAN, epoch(1, np.ones((13, 4), dtype=np.float32))),
        "transposed": (PLAN, epoch(1, np.ascontiguousarray(good.T))),
        "float64": (PLAN, epoch(1, good.astype(np.float64))),
        "integers": (PLAN, epoch(1, good.astype(np.int32))),
        "an end too early": (PLAN, epoch(1, good), end(2, good)),
        "an end without logits": (PLAN, epoch(1, good), Trained(1)),
        "an end of other shape": (PLAN, epoch(1, good), end(1, good[1:])),
        "an end before everything": (Trained(0),),
        "nothing planned": (replace(PLAN, epochs=0), Trained(0)),
        "less than nothing planned": (replace(PLAN, epochs=-1), Trained(-1)),
        "another plan later": (PLAN, epoch(1, good), replace(PLAN, epochs=1), Trained(1)),
        "another plan at once": (PLAN, replace(PLAN, epochs=1), epoch(1, good), end(1, good)),
        "no frame": (PLAN, b"Traceback (most recent call last)"),
        "a reply to something else": (CheckpointLoaded("fits"),),
    }


def test_what_no_honest_worker_says_fails(scripted: Scripted, job: Job) -> None:
    """Numbers, shapes and types are checked, and the order of things."""
    for case, replies in odd_replies(job.splits).items():
        found = measured(scripted, job, *replies)
        assert found.training.outcome is TrainingOutcome.FAILED, case
        assert found.training.reason.endswith("."), case
        assert len(found.training.epochs) <= 1, case


@pytest.mark.parametrize(
    ("reported", "loss"),
    [
        ([1e308, 1e308], None),
        ([np.nan, np.inf, 3.0], 3.0),
        ([[1.0, 2.0]], None),
        (3.0, None),
        ([], None),
    ],
    ids=str,
)
def test_reported_losses_are_only_shown(
    scripted: Scripted, job: Job, reported: Any, loss: float | None
) -> None:
    """Nothing that a student reports breaks or changes a score."""
    plan = replace(PLAN, epochs=1)
    found = measured(scripted, job, plan, epoch(1, logits(job.splits), reported), end(1, logits(job.splits)))
    assert found.training.epochs[0].train_loss == loss
    assert found.training.accuracy == 1.0


@pytest.mark.parametrize(
    ("raised", "outcome", "reason"),
    [
        (
            Raised(Problem("RecipeError"), "recipe", "no_model"),
            TrainingOutcome.UNKNOWN,
            "It could not be trained: no model was found in the source: no statement makes one of the graded "
            "class.",
        ),
        (
            Raised(Problem("KeyError", Said("'x'")), "engine"),
            TrainingOutcome.UNKNOWN,
            "The worker failed (KeyError).",
        ),
        (
            Raised(Problem("NotImplementedError", Said("TODO Attention.forward: ..."), "homework.py:9")),
            TrainingOutcome.FAILED,
            "There is nothing to train yet: `Attention.forward` is not implemented.",
        ),
        (
            Raised(Problem("NotImplementedError", Said(""), "homework.py:9")),
            TrainingOutcome.FAILED,
            "There is nothing to train yet: a part of it is not implemented.",
        ),
        (
            Raised(Problem("RuntimeError", Said("shapes differ"), "homework.py:9")),
            TrainingOutcome.FAILED,
            "Training ended before the first epoch: it raised RuntimeError.",
        ),
    ],
    ids=["recipe", "engine", "todo", "bare todo", "student"],
)
def test_what_raised_is_told_by_whose_it_is(
    scripted: Scripted, job: Job, raised: Raised, outcome: TrainingOutcome, reason: str
) -> None:
    """Only what the student's code raised fails; the rest is for a person."""
    told = replace(job.program, recipe=replace(job.program.recipe, train_transform="ToTensor()"))
    training = measured(scripted, replace(job, order_seed=4, program=told), raised).training
    assert (training.outcome, training.reason) == (outcome, reason)
    assert training.where == raised.problem.where
    assert training.accuracy is None


def test_what_raised_behind_images_that_we_prepared_is_for_a_person(scripted: Scripted, job: Job) -> None:
    """Where the source tells no transform, ours stands there: sizes that do not fit may be its fault."""
    raised = Raised(Problem("RuntimeError", Said("shapes differ"), "homework.py:9"))
    training = measured(scripted, replace(job, order_seed=4), raised).training
    assert training.outcome is TrainingOutcome.UNKNOWN
    assert training.reason.endswith("so the handed-out preparation was used instead.")


def test_more_epochs_than_the_first_loop_plans_are_trained(scripted: Scripted, job: Job) -> None:
    """A study may come first, or a short stage: the plan is of the first loop."""
    count, outputs = 25, logits(job.splits)
    replies = [epoch(number, outputs) for number in range(1, count + 1)]
    training = measured(scripted, job, PLAN, *replies, end(count, outputs)).training
    assert (len(training.epochs), training.planned_epochs) == (count, count)
    assert training.outcome is TrainingOutcome.COMPLETED


SECRET = "3Pr++/Xa/9n8" * 12


@pytest.mark.parametrize(
    ("problem", "told"),
    [
        (Problem("ValueError", Said(SECRET), "homework.py:9"), "it raised ValueError."),
        (Problem("E" + "x3" * 39, Said("no"), "homework.py:9"), "it raised an exception of its own."),
        (Problem("Stopped", Said(SECRET), "homework.py:9"), "an exception of its own, `Stopped`."),
        (Problem("Remark of the grader", Said(SECRET)), "it raised an exception of its own."),
        (Problem("NotImplementedError", Said(f"TODO {SECRET}: x")), "a part of it is not implemented."),
        (Problem("NotImplementedError", Said("TODO Attention.a1b2c3: x")), "a part of it is not"),
        (Problem("KeyError", Said(SECRET), f"{SECRET}:9"), "it raised KeyError."),
        (Problem("KeyError", Said(SECRET), "homework.py:123456789"), "it raised KeyError."),
    ],
)
@pytest.mark.parametrize("gap", ["", "loop_raised"])
def test_what_training_raises_carries_nothing_but_its_type_and_line(
    scripted: Scripted, job: Job, problem: Problem, told: str, gap: Gap
) -> None:
    """Its code knows which of the published images are not hidden, and 140 letters say it of all of them."""
    stopped = replace(job.program, source={"homework.py": "class Stopped(Exception): pass\n" * 20})
    own = replace(job, program=stopped, order_seed=4)
    raised = Raised(problem, "recipe" if gap else "student", gap)
    found = measured(scripted, own, PLAN, raised)
    written = repr(found)
    assert SECRET[:12] not in written and "Ex3x3" not in written
    if not gap:
        assert told in found.training.reason
    assert found.training.where in ("homework.py:9", "")


def test_on_ones_own_machine_what_was_raised_is_quoted(scripted: Scripted, job: Job) -> None:
    """Nothing is hidden there."""
    raised = Raised(Problem("ValueError", Said("no such class"), "homework.py:9"))
    found = measured(scripted, job, PLAN, raised)
    assert found.training.reason == "Training ended in epoch 1: it raised ValueError: “no such class”."


def test_a_checkpoint_says_nothing_that_code_could_have_made_up(scripted: Scripted, job: Job) -> None:
    """Its worker has the hidden images: names of tensors are told only if the source has such words."""
    own = replace(job, order_seed=4)
    odd = Misfit(1, 0, 3, f"blocks.{SECRET[:12]}.weight")
    for reply in (
        CheckpointLoaded("mismatch", misfit=odd),
        CheckpointLoaded("mismatch", misfit=Misfit(10**9, 0, 3, "weight")),
        CheckpointLoaded(SECRET),
        Raised(Problem("ValueError", Said(SECRET), f"{SECRET}:3")),
    ):
        found = measured_checkpoint(lambda reply=reply: scripted(reply), own, b"file", "a.pth")
        assert SECRET[:12] not in found.reason and str(10**9) not in found.reason and found.reason


def test_exception_in_a_later_epoch_names_it(scripted: Scripted, job: Job) -> None:
    """With its place."""
    raised = Raised(Problem("IndexError", Said("out of range"), "cell 4, line 3"))
    training = measured(
        scripted, replace(job, order_seed=4), PLAN, epoch(1, logits(job.splits)), raised
    ).training
    assert training.reason == "Training ended in epoch 2: it raised IndexError."
    assert training.where == "cell 4, line 3"


# --- checkpoints ------------------------------------------------------------------------------------------


def test_checkpoint_is_scored_here(scripted: Scripted, job: Job) -> None:
    """The worker answers for images; this side counts."""
    outputs = logits(job.splits, (1,))
    loaded = CheckpointLoaded("fits", arrays={"logits": outputs})
    worker = scripted(loaded)
    found = measured_checkpoint(lambda: worker, job, b"file", "a.pth")
    assert (found.status, found.reason, found.accuracy) == ("fits", "", 12 / 13)
    shown = [request.arrays["test_images"] for request in worker.requests[1:]]
    assert [len(images) for images in shown] == [1, 13] and shown[0].shape[1:] == shown[1].shape[1:]


def test_a_checkpoint_is_scored_on_what_nobody_was_given_where_that_is_known(
    scripted: Scripted, job: Job
) -> None:
    """Weights may know by heart what students were given to train on."""
    withheld = np.arange(len(job.splits.test_labels)) < 4
    own = replace(job, splits=replace(job.splits, withheld=withheld))
    worker = scripted(CheckpointLoaded("fits", arrays={"logits": logits(job.splits, (1,))}))
    found = measured_checkpoint(lambda: worker, own, b"file", "a.pth")
    assert (found.accuracy, found.withheld) == (3 / 4, 4)


@pytest.mark.parametrize(
    "second",
    [
        CheckpointLoaded("mismatch", "3Pr++/Xa/9n8"),
        CheckpointLoaded("3Pr++/Xa/9n8", "3Pr++/Xa/9n8"),
        Raised(Problem("ValueError", Said("3Pr++/Xa/9n8"))),
        Raised(Problem("3Pr++/Xa/9n8", Said("3Pr++/Xa/9n8")), "engine"),
        Raised(Problem("RecipeError", Said("3Pr++/Xa/9n8")), "recipe"),
    ],
    ids=lambda reply: type(reply).__name__,
)
def test_what_is_said_after_hidden_images_were_seen_is_not_repeated(
    scripted: Scripted, job: Job, second: Any
) -> None:
    """Which of the published images are hidden could be told in it."""
    made = []

    class Later(list):  # type: ignore[type-arg]
        """Another answer to each request."""

        def __iter__(self) -> Any:
            made.append(1)
            return iter([CheckpointLoaded("fits")] if len(made) == 1 else [second])

    worker = scripted()
    worker._script[False] = Later()
    found = measured_checkpoint(lambda: worker, job, b"file", "a.pth")
    assert found.status in ("refused", "not_tried") and found.reason.startswith("a.pth")
    assert len(made) == 2 and "3Pr" not in str(found)


@pytest.mark.parametrize(
    ("reply", "status", "words"),
    [
        (CheckpointLoaded("fits"), "refused", "not usable numbers"),
        (
            CheckpointLoaded("fits", arrays={"logits": np.full((13, 3), np.nan, dtype=np.float32)}),
            "refused",
            "not usable numbers",
        ),
        (
            CheckpointLoaded("fits", arrays={"logits": np.zeros((13, 3))}),
            "refused",
            "not usable numbers",
        ),
        (
            CheckpointLoaded("mismatch", misfit=Misfit(2, 1, 5, "weight")),
            "mismatch",
            "2 of the model's 5 tensors are missing in it and 1 of its own are not in the model (for example "
            "`weight` is missing). Save the weights of",
        ),
        (CheckpointLoaded("refused", "unreadable"), "refused", "it cannot be read: save it again"),
        (CheckpointLoaded("whole_model"), "whole_model", "it holds a whole pickled object"),
        (CheckpointLoaded("perfect"), "refused", ""),
        (DIE, "refused", "its limit of 3000 MB of memory"),
        (b"nonsense nonsense nonsense", "refused", "not an answer"),
        (
            Raised(Problem("TypeError", Said("no ViT"))),
            "not_tried",
            "could not be tried (the code raised TypeError: “no ViT”)",
        ),
        (Raised(Problem("RecipeError"), "recipe", "no_model"), "not_tried", "no model"),
        (Raised(Problem("KeyError", Said("x")), "engine"), "not_tried", "The worker failed"),
    ],
    ids=lambda value: str(value)[:50],
)
def test_checkpoint_that_cannot_be_scored_is_told_why(
    scripted: Scripted, job: Job, reply: Any, status: str, words: str
) -> None:
    """Every sentence names the file."""
    worker = scripted(reply)
    found = measured_checkpoint(lambda: worker, job, b"file", "a.pth")
    assert (found.status, found.accuracy) == (status, None)
    assert found.reason.startswith("a.pth") and words in found.reason
    assert worker.closed
