"""What a GPU gives: an epoch beside the handed-out pipeline's, a class at once beside one after the other.

And what it must not take: a submission that wants more than its part of the memory is stopped, and the others
get the results that they get alone. The environment variable ROUNDS says how many turns are measured (5).
"""

import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor
from torch.utils.data import DataLoader
from torchvision import datasets

from benchmarks.peers.cost import ToolError
from benchmarks.reference_training import (
    BATCH_SIZE,
    by_bare_loop,
    completed,
    generated_images,
    in_harness,
    in_worker,
    program_of,
    reference_job,
    write_folder,
)
from benchmarks.section import Section, here, spread, verdict
from benchmarks.settings import count
from grader.domain.evidence import Training
from grader.grading.concurrent_work import DeviceSlots, side_by_side
from grader.grading.devices import device_slots
from grader.kit.splits import LabeledImages, Splits
from grader.sandbox.host_client import Host
from grader.training import Job, Measured
from grader.worker.transforms import handed_out_transform

ROUNDS = count("ROUNDS", 5)
STUDENTS = 8
EPOCHS = 6  # of a training; of an epoch's time, the first warms up and is not counted
CLASS_SIZE = 1000  # what a class's time is projected to
TOLERANCE = 2.0  # points by which an accuracy may differ: sums on a GPU have no fixed order
# (what is compared, how it is claimed, how many times less is asked for)
EPOCH = ("an epoch", "An epoch takes less time than as handed out by the factor", 3)
CLASS = ("a class", "A class takes less time than one after the other by the factor", 4)
TITLE = "On a GPU"
TEXT = (
    f"The reference, {EPOCHS} epochs on generated images of 200 x 200. *An epoch*: with the answers for the "
    "test images, as handed out (JPEG files, ImageFolder, PIL transforms per item, DataLoader) and in the "
    f"harness. *A class*: {STUDENTS} trainings, one after the other and as many at once as the memory of the "
    f"GPU holds. {ROUNDS} turns. Then the class once more beside a submission that asks for more memory than "
    "its part."
)
COLUMNS = ("", "before, s", "harness, s", "ratio")


def measured() -> Section:
    """Both ratios and what is lost; where there is no GPU, a section that says so."""
    if torch.cuda.is_available():
        return compared("cuda", generated_images())
    rows = tuple((name, "not measured", "not measured", "") for name, _, _ in (EPOCH, CLASS))
    said = ("Not measured: there was no GPU. Tests run what trains on one on a processor.",)
    return Section(TITLE, TEXT, COLUMNS, rows, said, "Not measured.", measured=False)


def compared(
    device: str, splits: Splits, *, epochs: int = EPOCHS, rounds: int = ROUNDS, students: int = STUDENTS
) -> Section:
    """Both ratios on a device, and whether those who train at once disturb each other."""
    source, job = reference_job(splits, epochs, device)
    slots = device_slots(device, job.limits.gpu_memory_mb)
    of_epochs, of_classes, losses = [], [], []
    with (
        tempfile.TemporaryDirectory(prefix="grader-benchmark-") as scratch,
        Host.start("grader.worker", wrapped=True) as workers,
        multiprocessing.get_context("spawn").Pool(1) as process,
    ):

        def class_of(at_once: DeviceSlots) -> tuple[float, list[Training]]:
            """Seconds, and the trainings."""
            started = time.perf_counter()
            trainings = [completed(each) for each in _side_by_side(workers, [job] * students, at_once)]
            return time.perf_counter() - started, trainings

        _write_both(splits, Path(scratch))
        alone = in_harness(workers, job)  # and what is loaded once
        for number in range(1, rounds + 1):
            handed_out = process.apply(_handed_out, (source, scratch, epochs, device))
            epoch = [each.seconds for each in in_harness(workers, job).epochs]
            of_epochs.append((statistics.median(handed_out[1:]), statistics.median(epoch[1:])))
            (in_turn, _), (at_once, trainings) = class_of(DeviceSlots(1)), class_of(slots)
            of_classes.append((in_turn, at_once))
            losses.append(_largest_difference(alone, trainings))
            told = (f"{before:.2f} s and {after:.2f} s" for before, after in (of_epochs[-1], of_classes[-1]))
            print(f"  turn {number} of {rounds}: {', '.join(told)}", flush=True)
        verdicts = [_equality(losses), _projection([after for _, after in of_classes], students)]
        if device == "cuda":
            verdicts.append(_overrun(workers, source, job, alone, students))
    rows, ratios_said = [], []
    for (name, claim, least), pairs in ((EPOCH, of_epochs), (CLASS, of_classes)):
        before, after = zip(*pairs, strict=True)
        ratios = [slow / fast for slow, fast in pairs]
        rows.append((name, spread(before, digits=2), spread(after, digits=2), spread(ratios)))
        ratios_said.append(verdict(claim, statistics.median(ratios), least, at_most=False))
    where = here(device=torch.cuda.get_device_name() if device == "cuda" else "")
    return Section(TITLE, TEXT, COLUMNS, tuple(rows), (*ratios_said, *verdicts), where)


def _write_both(splits: Splits, folder: Path) -> None:
    train = LabeledImages(splits.train_names, splits.train_labels, splits.train_images)
    test = LabeledImages(splits.test_names, splits.test_labels, splits.test_images)
    for part, images in (("train", train), ("test", test)):
        write_folder(images, splits.classes, folder / part)


def _handed_out(source: str, folder: str, epochs: int, device: str) -> list[float]:
    """Seconds of each epoch, as a student's own machine trains."""
    transform = handed_out_transform(28, 1)
    train, test = (datasets.ImageFolder(f"{folder}/{part}", transform) for part in ("train", "test"))
    loader: DataLoader[tuple[Tensor, Tensor]] = DataLoader(test, batch_size=BATCH_SIZE)
    return by_bare_loop(source, train, lambda: (images for images, _ in loader), epochs, device)


def _side_by_side(workers: Host, jobs: Sequence[Job], slots: DeviceSlots) -> list[Measured]:
    """A training of each job, as many at once as there are slots."""

    def train(job: Job) -> Measured:
        with slots.taken():
            return in_worker(workers, job)

    return side_by_side(train, jobs, len(jobs))


# --- what must not be lost -------------------------------------------------------------------------------


def _largest_difference(alone: Training, trainings: Sequence[Training]) -> float:
    """Of accuracies, in points."""
    return max(100 * abs(_accuracy(each) - _accuracy(alone)) for each in trainings)


def _accuracy(training: Training) -> float:
    assert training.accuracy is not None, "images are classified"
    return training.accuracy


def _equality(losses: Sequence[float]) -> str:
    return verdict(
        "Largest difference of an accuracy at once from the one alone",
        max(losses),
        TOLERANCE,
        at_most=True,
        unit="points",
    )


def _projection(seconds: Sequence[float], students: int) -> str:
    """What a large class would take at the pace of a class at once."""
    minutes = statistics.median(seconds) / students * CLASS_SIZE / 60
    return f"{CLASS_SIZE} such submissions would take {minutes:.1f} minutes of this GPU, at once as above."


def _overrun(workers: Host, source: str, job: Job, alone: Training, students: int) -> str:
    """Whether a submission that overruns its part of the memory is stopped alone."""
    hoard = f"    hoard = torch.zeros({job.gpu_memory_mb} * 10**6, dtype=torch.uint8, device=device)\n"
    first_line = "    model.train()\n"
    if source.count(first_line) != 1:
        raise ToolError(f"{first_line.strip()} does not stand in the reference's homework once.")
    greedy = replace(job, program=program_of(source.replace(first_line, hoard + first_line)))
    slots = device_slots(job.device, job.limits.gpu_memory_mb)
    first, *others = _side_by_side(workers, [greedy, *[job] * students], slots)
    if not first.lacked_gpu_memory:
        raise ToolError(f"A submission had more than its part of the GPU: {first.training.outcome}.")
    difference = _largest_difference(alone, [completed(each) for each in others])
    return verdict(
        f"The others' largest difference beside a submission that was stopped at its {job.gpu_memory_mb} MB",
        difference,
        TOLERANCE,
        at_most=True,
        unit="points",
    )
