"""What a GPU gives: an epoch beside the handed-out pipeline's, a class at once beside one after the other."""

import multiprocessing
import statistics
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import DataLoader
from torchvision import datasets

from benchmarks.section import Section, here, spread, verdict
from benchmarks.training import (
    BATCH_SIZE,
    definitions,
    images,
    limits,
    model_and_optimizer,
    reference_job,
    write_folder,
)
from grader.domain.evidence import TrainingOutcome
from grader.kit.splits import Splits
from grader.pipeline.turns import Turns, turns_on
from grader.protocol.link import WorkerProcess
from grader.sandbox.host import Host
from grader.training import Job, measured_training
from grader.worker.transforms import handed_out_transform

ROUNDS = 5
STUDENTS = 8
EPOCHS = 6  # of a training; of an epoch's time, the first warms up and is not counted
LEAST_EPOCH, LEAST_CLASS = 3, 4  # times less

TITLE = "On a GPU"
TEXT = (
    "The reference, {epochs} epochs on {count} generated images of 200 x 200. *An epoch*: with the answers "
    "for the test images, as handed out (JPEG files, ImageFolder, PIL transforms per item, DataLoader) and "
    "in the harness. *A class*: {students} trainings, one after the other and as many at once as the memory "
    "of the GPU holds. {rounds} turns."
)
COLUMNS = ("", "before, s", "harness, s", "ratio")


def measured(
    device: str = "cuda", splits: Splits | None = None, *, rounds: int = ROUNDS, students: int = STUDENTS
) -> Section:
    """Both ratios; where there is no GPU, a section that says so."""
    splits = splits or images()
    count = len(splits.train_images)
    text = TEXT.format(epochs=EPOCHS, count=count, students=students, rounds=rounds)
    if device == "cuda" and not torch.cuda.is_available():
        rows = tuple((name, "not measured", "not measured", "") for name in ("an epoch", "a class"))
        said = ("Not measured: there was no GPU. Tests run what trains on one on a processor.",)
        return Section(TITLE, text, COLUMNS, rows, said, "Not measured.", measured=False)
    source, job = reference_job(splits, device, EPOCHS)
    turns = turns_on(device, job.limits.gpu_memory_mb)
    epochs, classes = [], []
    with (
        tempfile.TemporaryDirectory(prefix="grader-benchmark-") as scratch,
        Host.start("grader.worker", wrapped=True) as workers,
        multiprocessing.get_context("spawn").Pool(1) as process,
    ):
        _write_both(splits, Path(scratch))
        _class_seconds(workers, job, Turns(1), 1)  # what is loaded once
        for number in range(1, rounds + 1):
            handed_out = statistics.median(process.apply(_handed_out, (source, scratch, device)))
            epochs.append((handed_out, _epoch_seconds(workers, job)))
            in_turn, at_once = (_class_seconds(workers, job, each, students) for each in (Turns(1), turns))
            classes.append((in_turn, at_once))
            print(f"  turn {number} of {rounds}: {handed_out:.2f} s, {in_turn:.1f} s", flush=True)
    rows = tuple(_row(name, pairs) for name, pairs in (("an epoch", epochs), ("a class", classes)))
    verdicts = tuple(
        verdict(claim, statistics.median(a / b for a, b in pairs), least, at_most=False)
        for claim, pairs, least in (
            ("An epoch takes less time than as handed out by the factor", epochs, LEAST_EPOCH),
            ("A class takes less time than one after the other by the factor", classes, LEAST_CLASS),
        )
    )
    name = torch.cuda.get_device_name() if device == "cuda" else ""
    return Section(TITLE, text, COLUMNS, rows, verdicts, here(device=name))


def _row(name: str, pairs: list[tuple[float, float]]) -> tuple[str, ...]:
    before, after = zip(*pairs, strict=True)
    ratios = [a / b for a, b in pairs]
    return name, spread(before, digits=2), spread(after, digits=2), spread(ratios)


def _write_both(splits: Splits, folder: Path) -> None:
    write_folder(splits, folder / "train")
    test = {"train_images": splits.test_images, "train_labels": splits.test_labels}
    write_folder(replace(splits, **test, train_names=splits.test_names), folder / "test")


def _handed_out(source: str, folder: str, device: str) -> list[float]:
    """Seconds of each epoch but the first, as a student's own machine trains."""
    names, transform = definitions(source, device), handed_out_transform(28, 1)
    train, test = (datasets.ImageFolder(f"{folder}/{part}", transform) for part in ("train", "test"))
    model, optimizer = model_and_optimizer(names)
    loader: DataLoader[Any] = DataLoader(train, batch_size=BATCH_SIZE, shuffle=True)
    seconds = []
    for _ in range(EPOCHS):
        started = time.perf_counter()
        names["train_epoch"](model, optimizer, loader, [])
        model.eval()
        with torch.no_grad():
            for batch, _ in DataLoader(test, batch_size=BATCH_SIZE):
                model(batch.to(device)).cpu()
        seconds.append(time.perf_counter() - started)
    return seconds[1:]


def _worker(workers: Host, job: Job) -> WorkerProcess:
    return workers.spawn(limits(job), gpu=job.device == "cuda")


def _epoch_seconds(workers: Host, job: Job) -> float:
    epochs = measured_training(lambda: _worker(workers, job), job).training.epochs
    return statistics.median(epoch.seconds for epoch in epochs[1:])


def _class_seconds(workers: Host, job: Job, turns: Turns, students: int) -> float:
    """Seconds of so many trainings.

    Raises:
        RuntimeError: One did not complete.
    """

    def train(_: int) -> TrainingOutcome:
        with turns.taken():
            return measured_training(lambda: _worker(workers, job), job).training.outcome

    started = time.perf_counter()
    with ThreadPoolExecutor(students) as pool:
        outcomes = list(pool.map(train, range(students)))
    if set(outcomes) != {TrainingOutcome.COMPLETED}:
        raise RuntimeError(f"a training did not complete: {outcomes}")
    return time.perf_counter() - started
