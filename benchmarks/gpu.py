"""What a GPU gives: an epoch beside the handed-out pipeline's, a class at once beside one after the other."""

import multiprocessing
import statistics
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch
from torch import Tensor
from torch.utils.data import DataLoader
from torchvision import datasets

from benchmarks.reference_training import (
    BATCH_SIZE,
    by_bare_loop,
    generated_images,
    in_harness,
    reference_job,
    write_folder,
)
from benchmarks.section import Section, here, spread, verdict
from grader.grading.concurrent_work import DeviceSlots, device_slots
from grader.kit.splits import LabeledImages, Splits
from grader.sandbox.host_client import Host
from grader.training import Job
from grader.worker.transforms import handed_out_transform

ROUNDS = 5
STUDENTS = 8
EPOCHS = 6  # of a training; of an epoch's time, the first warms up and is not counted
# (what is compared, how it is claimed, how many times less is asked for)
EPOCH = ("an epoch", "An epoch takes less time than as handed out by the factor", 3)
CLASS = ("a class", "A class takes less time than one after the other by the factor", 4)
TITLE = "On a GPU"
TEXT = (
    f"The reference, {EPOCHS} epochs on generated images of 200 x 200. *An epoch*: with the answers for the "
    "test images, as handed out (JPEG files, ImageFolder, PIL transforms per item, DataLoader) and in the "
    f"harness. *A class*: {STUDENTS} trainings, one after the other and as many at once as the memory of the "
    f"GPU holds. {ROUNDS} turns."
)
COLUMNS = ("", "before, s", "harness, s", "ratio")


def measured() -> Section:
    """Both ratios; where there is no GPU, a section that says so."""
    if torch.cuda.is_available():
        return compared("cuda", generated_images())
    rows = tuple((name, "not measured", "not measured", "") for name, _, _ in (EPOCH, CLASS))
    said = ("Not measured: there was no GPU. Tests run what trains on one on a processor.",)
    return Section(TITLE, TEXT, COLUMNS, rows, said, "Not measured.", measured=False)


def compared(
    device: str, splits: Splits, *, epochs: int = EPOCHS, rounds: int = ROUNDS, students: int = STUDENTS
) -> Section:
    """Both ratios on a device."""
    source, job = reference_job(splits, epochs, device)
    slots = device_slots(device, job.limits.gpu_memory_mb)
    of_epochs, of_classes = [], []
    with (
        tempfile.TemporaryDirectory(prefix="grader-benchmark-") as scratch,
        Host.start("grader.worker", wrapped=True) as workers,
        multiprocessing.get_context("spawn").Pool(1) as process,
    ):
        _write_both(splits, Path(scratch))
        in_harness(workers, job)  # what is loaded once
        for number in range(1, rounds + 1):
            handed_out = process.apply(_handed_out, (source, scratch, epochs, device))
            ours = [epoch.seconds for epoch in in_harness(workers, job).epochs]
            of_epochs.append((statistics.median(handed_out[1:]), statistics.median(ours[1:])))
            in_turn, at_once = (
                _class_seconds(workers, job, each, students) for each in (DeviceSlots(1), slots)
            )
            of_classes.append((in_turn, at_once))
            told = (f"{before:.2f} s and {after:.2f} s" for before, after in (of_epochs[-1], of_classes[-1]))
            print(f"  turn {number} of {rounds}: {', '.join(told)}", flush=True)
    rows, verdicts = [], []
    for (name, claim, least), pairs in ((EPOCH, of_epochs), (CLASS, of_classes)):
        before, after = zip(*pairs, strict=True)
        ratios = [slow / fast for slow, fast in pairs]
        rows.append((name, spread(before, digits=2), spread(after, digits=2), spread(ratios)))
        verdicts.append(verdict(claim, statistics.median(ratios), least, at_most=False))
    where = here(device=torch.cuda.get_device_name() if device == "cuda" else "")
    return Section(TITLE, TEXT, COLUMNS, tuple(rows), tuple(verdicts), where)


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


def _class_seconds(workers: Host, job: Job, slots: DeviceSlots, students: int) -> float:
    """Seconds of so many trainings."""

    def train(_: int) -> None:
        with slots.taken():
            in_harness(workers, job)

    started = time.perf_counter()
    with ThreadPoolExecutor(students) as pool:
        list(pool.map(train, range(students)))
    return time.perf_counter() - started
