"""Trains a student's own file on the student's own machine, and measures it as grading does.

It finds the images and the device, and probes PyTorch for a GPU. It writes another number of epochs into
the program where a short try is wanted. It trains, and says what the measurement is worth in points and
what is in doubt. It writes no files and shows nothing.
"""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from grader.analysis import program as analyzed
from grader.analysis.rewriting import rewritten
from grader.course.dataset_file import SYNTHETIC
from grader.domain.analyzed_program import Note, Program
from grader.domain.assignment import Assignment, RubricItem
from grader.domain.errors import UsageError
from grader.domain.evidence import Training, TrainingOutcome
from grader.domain.measure import Measure
from grader.domain.program_run import Plan
from grader.students.homework import LocalAssignment
from grader.students.own_check import tried_plan
from grader.students.own_machine import OwnWorkers, own_program, own_seed, with_own_machine_limits

if TYPE_CHECKING:
    from grader.kit.splits import Examples, Splits
    from grader.training import EpochReport


def with_epochs(program: Program, assignment: Assignment, epochs: int) -> Program:
    """The program with another number of epochs in its source.

    Args:
        program: A student's own.
        epochs: Replaces each number of epochs that the source writes as a number.

    Raises:
        UsageError: The source writes none as a number.
    """
    tuned = [*program.tuned, *(value for read_for in program.further.values() for value in read_for.tuned)]
    places = {value.written for value in tuned if value.name == "epochs" and value.written is not None}
    if not places:
        raise UsageError(
            f"--epochs {epochs}: {program.file} does not write its number of epochs as a number of its own. "
            "Write one, as in N_EPOCHS = 30, or train without --epochs."
        )
    changed = rewritten(program, {place: str(epochs) for place in places})
    return analyzed(program.file, changed.code, assignment.program_rules, changed.modules)


# --- own training ----------------------------------------------------------------------------------------


DATA_FILE = "dataset.zip"
_PROBE = (
    "import torch, torchvision; print(torch.cuda.get_device_name(0) if torch.cuda.is_available() else '')"
)
_CHOICES = (
    "Say which images: --data PATH (the course's zip, or the folder that it unpacks to), or "
    f"--data {SYNTHETIC} (a small artificial set, for a quick try)."
)
_PROBE_SECONDS = 120.0
_GPU_NODES = ("/dev/nvidiactl", "/dev/dxg", "/dev/kfd")  # NVIDIA; the same within WSL; AMD


@dataclass(frozen=True)
class LocalTraining:
    """What training yielded.

    Attributes:
        item: The rubric item that the accuracy decides, if the assignment has one.
        points: What that accuracy is worth; None when training did not complete, a person would decide, or
            there is no such item.
        near: The accuracy is near the threshold, and only one seed was trained.
        doubts: Why a person would have to decide what the accuracy is worth, in sentences.
        notes: What had to be assumed.
        synthetic: The images were made up, so that the accuracy says nothing about points.
        plan: What was trained, as a trial showed beforehand.
        shortened: It was trained for another number of epochs than the source states.
        is_accuracy: What counts is the share of right answers, not a number of the assignment's own.
    """

    program: Program
    training: Training
    item: RubricItem | None
    points: float | None
    near: bool = False
    doubts: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()
    synthetic: bool = False
    plan: Plan = field(default_factory=Plan)
    shortened: bool = False
    is_accuracy: bool = True

    @property
    def tells_points(self) -> bool:
        """Whether what was measured is what a grade would be measured by."""
        return not self.synthetic and not self.shortened


def image_source(local: LocalAssignment, data: str | None, *, beside: Path) -> Path | None:
    """Where the images are; None when synthetic ones are to be made.

    Args:
        local: The assignment.
        data: A zip or folder of images, `synthetic`, or None: the `dataset.zip` beside the homework.
        beside: The homework's folder.

    Raises:
        UsageError: There are none.
    """
    use = local.assignment.required_data()
    if data == SYNTHETIC:
        return None
    if data is None and use.is_made:
        return None
    if data is not None:
        if not Path(data).exists():
            choices = "These data are made, and need none: leave it out." if use.is_made else _CHOICES
            raise UsageError(f"--data {data}: there is no such file or folder. {choices}")
        return Path(data)
    for folder in (beside, local.assignment.folder, Path.cwd()):
        if (folder / DATA_FILE).is_file():
            return folder / DATA_FILE
    raise UsageError(f"There is no {DATA_FILE} beside the homework. {_CHOICES}")


def student_data(local: LocalAssignment, source: Path | None) -> "Splits | Examples":
    """The data set, of any kind, split as students split it. See `grader.course.student_data`."""
    from grader.course.dataset_file import load_examples
    from grader.course.student_data import student_split
    from grader.files.known_folders import cache_folder

    use = local.assignment.required_data()
    if use.are_images:
        return student_split(local.datasets, use, source)
    return load_examples(
        local.datasets,
        use.synthetic if source is None else use.real,
        source,
        seed=use.student_seed,
        train_share=use.train_share,
        cache=cache_folder(),
    )


def local_training(
    path: Path,
    local: LocalAssignment,
    splits: Callable[[], "Splits | Examples"],
    *,
    device: str = "auto",
    read: Callable[[Program, Plan], None] = lambda program, plan: None,
    report: "Callable[[EpochReport], None]" = lambda epoch: None,
    seeds: int = 1,
    measure: str | None = None,
    epochs: int | None = None,
    synthetic: bool = False,
) -> LocalTraining:
    """Train one of a file's models on the training images, and measure it on the others.

    Args:
        path: The homework.
        local: Its assignment.
        splits: Returns the images; called while the worker starts.
        device: `cpu`, `cuda`, or `auto`: a GPU when there is one.
        read: Called with the program and what would be trained, once the file was read and tried.
        report: Called after each epoch.
        seeds: How many times to train, each time with another seed.
        measure: Which of the models, by its measure's id; None: the first.
        epochs: Instead of the number that the source states; None: as it states.
        synthetic: The images are made up.

    Raises:
        UsageError: There is no such file, no such measure, no such device, no usable data, or the number of
            epochs is not written as a number in the file.
        SubmissionError: The file cannot be read as a script or a notebook.
    """
    assignment = with_own_machine_limits(local.assignment)
    chosen = chosen_measure(assignment, measure)
    if epochs is not None and chosen.call is not None:
        raise UsageError(
            f"--epochs {epochs}: the course calls {chosen.call.function} with its own numbers, whatever your "
            "file says. Train without --epochs."
        )
    with OwnWorkers(assignment, path.parent) as workers:
        program = own_program(path, assignment)
        if epochs is not None:
            program = with_epochs(program, assignment, epochs)
        program = program.read_for(chosen.id)
        workers.prepare()
        plan = tried_plan(path, program, chosen, assignment, workers)
        read(program, plan)
        from grader.training import is_near, job_of, repeated_training

        data, limits, where = splits(), assignment.limits, chosen_device(device)
        measured = repeated_training(
            workers,
            lambda run: job_of(
                assignment,
                chosen,
                data,
                program=program,
                limits=limits,
                forbidden=assignment.forbidden_patterns,
                device=where,
                seed=own_seed(path, "training", run),
            ),
            None,
            report,
            seeds,
        )

    item, training = assignment.item_measured(chosen.id), measured.training
    counts_for_points = not synthetic and epochs is None
    near = (
        counts_for_points
        and item is not None
        and seeds == 1
        and is_near(training, item.threshold, item.scale)
    )
    doubts = _doubts(item, training)
    points = _points(item, training) if counts_for_points and not doubts else None
    notes = measured.notes
    return LocalTraining(
        program,
        training,
        item,
        points,
        near,
        doubts,
        notes,
        synthetic,
        plan,
        shortened=epochs is not None,
        is_accuracy=not chosen.function,
    )


def chosen_measure(assignment: Assignment, measure: str | None) -> Measure:
    """One of the assignment's measures.

    Args:
        measure: Its id; None: the first.

    Raises:
        UsageError: There is no such measure.
    """
    for candidate in assignment.measures:
        if measure in (None, candidate.id):
            return candidate
    there = " and ".join(candidate.id for candidate in assignment.measures)
    raise UsageError(f"--measure {measure}: there is no such measure. This assignment has {there}.")


def chosen_device(wanted: str) -> str:
    """`cpu` or `cuda`.

    Args:
        wanted: `cpu`, `cuda`, or `auto`: a GPU when there is one.

    Raises:
        UsageError: A GPU is wanted, and PyTorch sees none.
    """
    if wanted == "cpu" or (wanted == "auto" and not _may_have_gpu()):
        return "cpu"
    if torch_probe().gpu:
        return "cuda"
    if wanted == "auto":
        return "cpu"
    raise UsageError(
        "PyTorch sees no GPU on this machine. Use --device cpu or auto; `grader doctor` says more."
    )


@dataclass(frozen=True)
class TorchProbe:
    """What PyTorch reports about itself.

    Attributes:
        gpu: The first GPU that it sees; empty when it sees none.
        fault: Why it cannot be imported; empty when it can.
    """

    gpu: str = ""
    fault: str = ""


@cache
def torch_probe() -> TorchProbe:
    """Import torch and torchvision in a process of its own, and ask for a GPU."""
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-c", _PROBE],
            capture_output=True,
            text=True,
            timeout=_PROBE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return TorchProbe(fault=str(error))
    if done.returncode != 0:
        return TorchProbe(fault=(done.stderr.strip().splitlines() or ["it ended without a word"])[-1])
    return TorchProbe(gpu=done.stdout.strip())


def _may_have_gpu() -> bool:
    """Whether there may be a GPU; False where the machine alone rules it out, which saves loading torch."""
    if sys.platform == "darwin":
        return False  # PyTorch has no CUDA there
    return sys.platform != "linux" or any(Path(node).exists() for node in _GPU_NODES)


def _points(item: RubricItem | None, training: Training) -> float | None:
    from grader.scoring import measured_points

    completed = training.outcome is TrainingOutcome.COMPLETED
    if item is None or training.measured is None or not completed:
        return None
    return measured_points(item, training)


def _doubts(item: RubricItem | None, training: Training) -> tuple[str, ...]:
    from grader.scoring import uncertainties

    return uncertainties(item, training) if item is not None else ()
