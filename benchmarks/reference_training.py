"""The reference, trained in the harness and by a bare loop of a few lines."""

import ast
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from benchmarks.peers.cost import ToolError
from datasets.synthetic_steel import made_images
from grader.analysis import program
from grader.course.assignment_file import read_assignment
from grader.course.reference_solution import solved_source
from grader.domain.analyzed_program import Program
from grader.domain.evidence import Training, TrainingOutcome
from grader.kit.splits import LabeledImages, Splits, split_images
from grader.sandbox.host_client import Host
from grader.sandbox.process_limits import ProcessLimits
from grader.training import Job, Measured, measured_training

ASSIGNMENT = read_assignment(Path(__file__).parents[1] / "reference" / "vit_defects")
BATCH_SIZE = 64


def generated_images() -> Splits:
    """As many as a small data set has, split."""
    return split_images("synthetic_steel", ASSIGNMENT.data.classes, made_images(0), seed=42, train_share=0.7)


def reference_job(splits: Splits, epochs: int, device: str = "cpu") -> tuple[str, Job]:
    """The reference's homework with so many epochs, and its training."""
    path = ASSIGNMENT.folder / "solution.py"
    source = solved_source(path.read_text(encoding="utf-8"), path.name)
    source = source.replace("N_EPOCHS = 30", f"N_EPOCHS = {epochs}")
    found, limits = program_of(source), ASSIGNMENT.limits
    return source, Job(found, limits, device=device, gpu_memory_mb=limits.gpu_memory_mb, splits=splits)


def program_of(source: str) -> Program:
    """A homework as the harness reads it."""
    return program("homework.py", source.encode(), ASSIGNMENT.program_rules)


def in_worker(workers: Host, job: Job) -> Measured:
    """The training in a worker, with all layers of isolation."""
    limits = ProcessLimits.within(job.limits, cpu_seconds=int(job.limits.training_seconds))
    return measured_training(lambda: workers.spawn(limits, gpu=job.device == "cuda"), job)


def in_harness(workers: Host, job: Job) -> Training:
    """The training in a worker, with all layers of isolation.

    Raises:
        ToolError: It did not complete.
    """
    return completed(in_worker(workers, job))


def completed(measured: Measured) -> Training:
    """A training that was completed.

    Raises:
        ToolError: It was not.
    """
    training = measured.training
    if training.outcome is not TrainingOutcome.COMPLETED:
        raise ToolError(f"A training of the reference did not complete: {training.reason}")
    return training


def defined(source: str, device: str = "cpu") -> dict[str, Any]:
    """What a homework of the course's own imports and defines, without running the rest of it."""
    kept = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef)
    body = [node for node in ast.parse(source).body if isinstance(node, kept)]
    names: dict[str, Any] = {"device": torch.device(device), "print": lambda *_: None}
    exec(compile(ast.Module(body, []), "homework.py", "exec"), names)  # noqa: S102 - the reference
    return names


def by_bare_loop(
    source: str, train: Dataset[Any], test: Callable[[], Iterable[Tensor]], epochs: int, device: str = "cpu"
) -> list[float]:
    """Seconds of each epoch of the reference, with the model's answers for the test images.

    Args:
        source: The homework.
        test: Gives the batches of a pass over the test images.
    """
    names = defined(source, device)
    torch.manual_seed(0)
    model = names["ViT"](
        image_size=28, patch_size=4, num_classes=6, channels=1, dim=64, depth=6, heads=4, mlp_dim=128
    ).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.05)
    loader: DataLoader[Any] = DataLoader(train, batch_size=BATCH_SIZE, shuffle=True)
    seconds = []
    for _ in range(epochs):
        started = time.perf_counter()
        names["train_epoch"](model, optimizer, loader, [])
        model.eval()
        with torch.no_grad():
            for batch in test():
                model(batch.to(device)).cpu()
        seconds.append(time.perf_counter() - started)
    return seconds


def write_folder(images: LabeledImages, classes: tuple[str, ...], folder: Path) -> None:
    """The images as JPEG files in a folder for each class, as they are handed out."""
    for name, label, image in zip(images.names, images.labels, images.images, strict=True):
        place = folder / classes[label]
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).convert("RGB").save(place / f"{Path(name).stem}.jpg", quality=95)
