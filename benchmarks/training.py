"""What the harness adds to a training, and what it saves on data."""

import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

from benchmarks.reference_training import (
    BATCH_SIZE,
    by_bare_loop,
    generated_images,
    in_harness,
    reference_job,
    write_folder,
)
from benchmarks.section import Section, spread, verdict
from grader.kit.splits import LabeledImages, Splits
from grader.sandbox import libc
from grader.sandbox.host_client import Host
from grader.worker.graded_images import GradedImages
from grader.worker.transforms import handed_out_transform

ROUNDS = 7
TURNS, EPOCHS = 9, 6  # of the overhead; the first epoch of each training warms up and is not counted
MOST_PERCENT = 3
LEAST_RATIO = 20
HANDED_OUT_EPOCHS = 30  # of a training: what is done once is shared by so many


def overhead(rounds: int = TURNS) -> Section:
    """Epochs in the harness beside epochs of a bare loop: same model, batches, device and evaluation."""
    torch.set_num_threads(1)
    splits = generated_images()
    source, job = reference_job(splits, EPOCHS)
    harness, bare, keeping = [], [], []
    fresh = multiprocessing.get_context("spawn")
    with (
        Host.start("grader.worker", wrapped=True) as workers,
        fresh.Pool(1) as process,
        fresh.Pool(1, libc.keep_freed_memory) as keeping_process,
    ):
        for number in range(1, rounds + 1):
            epochs = in_harness(workers, job).epochs
            harness.append(statistics.median(epoch.seconds for epoch in epochs[1:]))
            for loop, seconds in ((process, bare), (keeping_process, keeping)):
                seconds.append(statistics.median(loop.apply(_bare, (source, splits))[1:]))
            told = (f"{seconds[-1]:.2f} s" for seconds in (harness, bare, keeping))
            print(f"  turn {number} of {rounds}: {', '.join(told)}", flush=True)
    added, beside_keeping = (
        [100 * (ours / theirs - 1) for ours, theirs in zip(harness, loops, strict=True)]
        for loops in (bare, keeping)
    )
    return Section(
        "Training: the harness",
        f"Seconds of one epoch of the reference on {len(splits.train_images)} images of 28 x 28, with the "
        f"answers for {len(splits.test_images)} test images, one thread; trainings in {rounds} turns, "
        f"of each the median of its epochs from the second to number {EPOCHS}: the harness with all layers "
        "of isolation, and a loop of a few lines, in a process of its own, that calls the same train_epoch "
        "with the same prepared images. Workers keep the memory that they free, which a bare loop does not; "
        "one that does is there for a fair look.",
        ("an epoch", "seconds", "the harness adds, %"),
        (
            ("harness", spread(harness, digits=2), ""),
            ("bare loop", spread(bare, digits=2), spread(added)),
            ("bare loop that keeps what it frees", spread(keeping, digits=2), spread(beside_keeping)),
        ),
        tuple(
            verdict(claim, statistics.median(each), MOST_PERCENT, at_most=True, unit="%")
            for claim, each in (
                ("The harness adds", added),
                ("Beside a loop that keeps what it frees, it adds", beside_keeping),
            )
        ),
    )


def data(rounds: int = ROUNDS) -> Section:
    """The time that a training's data takes as handed out and in the harness, for three transforms."""
    torch.set_num_threads(1)
    splits = generated_images()
    rows, verdicts = [], []
    with tempfile.TemporaryDirectory(prefix="grader-benchmark-") as scratch:
        train = LabeledImages(splits.train_names, splits.train_labels, splits.train_images)
        write_folder(train, splits.classes, Path(scratch))
        decoding = statistics.median(_decoding_seconds(scratch) for _ in range(rounds))
        for name, transform in _transforms().items():
            pairs = []
            for _ in range(rounds):
                handed_out = HANDED_OUT_EPOCHS * _pass_seconds(
                    lambda transform=transform: datasets.ImageFolder(scratch, transform=transform)
                )
                pairs.append((_harness_seconds(splits, transform), handed_out))
            ratios = [handed_out / ours for ours, handed_out in pairs]
            alone = [handed_out / (ours + decoding) for ours, handed_out in pairs]
            ours, theirs = ([pair[side] for pair in pairs] for side in (0, 1))
            rows.append((name, spread(theirs), spread(ours, digits=2), spread(ratios), spread(alone)))
            claim = f"Data take less time by the factor ({name})"
            verdicts.append(verdict(claim, statistics.median(ratios), LEAST_RATIO, at_most=False))
    return Section(
        "Training: data",
        f"Seconds that {HANDED_OUT_EPOCHS} epochs of {len(splits.train_images)} generated images take "
        "without a model: as handed out (JPEG files of 200 x 200, ImageFolder, PIL transforms per item, "
        f"DataLoader; one pass times {HANDED_OUT_EPOCHS}) and in the harness (what is done once, and one "
        f"pass times {HANDED_OUT_EPOCHS}); {rounds} pairs in turn, one thread. The harness gets decoded "
        f"images: they are decoded once for a whole class, which takes {decoding:.2f} s here. The last ratio "
        "counts that too, as if a class were one submission. The same random numbers give the same images: "
        "tests/worker/test_batch_transforms.py.",
        ("transform", "handed out, s", "harness, s", "ratio", "ratio for a class of one"),
        tuple(rows),
        tuple(verdicts),
    )


def _bare(source: str, splits: Splits) -> list[float]:
    """Seconds of each epoch of a bare loop over the images that the harness prepares."""
    torch.set_num_threads(1)
    transform = handed_out_transform(28, 1)
    train = GradedImages(splits.train_images, splits.train_labels, splits.classes, transform)
    test = GradedImages(splits.test_images, None, splits.classes, transform)
    batches = test.batch(0, len(test)).split(BATCH_SIZE)
    return by_bare_loop(source, train, lambda: batches, EPOCHS)


def _transforms() -> dict[str, Any]:
    small, gray = transforms.Resize((28, 28)), transforms.Grayscale(num_output_channels=1)
    tensor, normal = transforms.ToTensor(), transforms.Normalize((0.5,), (0.5,))
    flips = transforms.RandomHorizontalFlip(), transforms.RandomVerticalFlip()
    rotated = transforms.RandomRotation(15), transforms.ColorJitter(brightness=0.2, contrast=0.2)
    return {
        "as handed out": handed_out_transform(28, 1),
        "with random flips": transforms.Compose([small, gray, *flips, tensor, normal]),
        "with random flips, rotation and jitter": transforms.Compose(
            [small, gray, *flips, *rotated, tensor, normal]
        ),
    }


def _decoding_seconds(folder: str) -> float:
    images = datasets.ImageFolder(folder)
    started = time.perf_counter()
    for path, _ in images.samples:
        images.loader(path)
    return time.perf_counter() - started


def _pass_seconds(dataset: Callable[[], Any]) -> float:
    started, made = time.perf_counter(), dataset()
    for _ in _batches(made):
        pass
    return time.perf_counter() - started


def _batches(dataset: Any) -> Iterator[Any]:
    yield from DataLoader(dataset, batch_size=BATCH_SIZE, shuffle=True)


def _harness_seconds(splits: Splits, transform: Any) -> float:
    started = time.perf_counter()
    images = GradedImages(splits.train_images, splits.train_labels, splits.classes, transform)
    once = time.perf_counter() - started
    return once + HANDED_OUT_EPOCHS * _pass_seconds(lambda: images)
