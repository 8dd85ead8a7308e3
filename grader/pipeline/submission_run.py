"""One submission, from its files to its evidence."""

import hashlib
import hmac
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from grader import __version__
from grader.course.locate import Course
from grader.domain.assignment import Assignment
from grader.domain.errors import GraderError, SubmissionError
from grader.domain.evidence import (
    Attestation,
    Checkpoint,
    Epoch,
    Evidence,
    Finding,
    Status,
    Training,
    TrainingOutcome,
)
from grader.domain.program import ForbiddenUse, Place, Program
from grader.domain.submission import Intake, Submission
from grader.intake import intake as accepted
from grader.kit.splits import Splits
from grader.pipeline.hosts import Hosts
from grader.pipeline.judging import judged
from grader.pipeline.opening import OpenedApart
from grader.pipeline.parser import parsed
from grader.pipeline.progress import Progress, Stage, Watcher
from grader.protocol.link import WorkerProcess
from grader.sandbox.limits import ProcessLimits
from grader.training import Job, measured_checkpoint, measured_training

TRIAL_SECONDS = 20.0  # for the first epoch of a submission of which a part hung in the checks


@dataclass(frozen=True)
class Run:
    """What all submissions of a run share.

    Attributes:
        splits: The hidden split; None when nothing is trained.
        device: Where training runs: `cpu` or `cuda`.
    """

    course: Course
    assignment: Assignment
    hosts: Hosts
    splits: Splits | None
    device: str = "cpu"
    gpu: threading.Lock = field(default_factory=threading.Lock)

    def device_turn(self) -> AbstractContextManager[Any]:
        """Held while a submission trains: one at a time on a GPU, whose memory cannot be divided."""
        return self.gpu if self.device == "cuda" else nullcontext()


@dataclass
class Findings:
    """The evidence of one submission while it is collected."""

    evidence: Evidence
    images: dict[str, bytes] = field(default_factory=dict)

    def add(self, **values: Any) -> None:
        """Replace parts of the evidence."""
        self.evidence = replace(self.evidence, **values)

    @contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        """Note how long a stage took."""
        started = time.monotonic()
        try:
            yield
        finally:
            seconds = {**(self.evidence.seconds or {}), stage: round(time.monotonic() - started, 3)}
            self.add(seconds=seconds)


def examined(run: Run, submission: Submission, *, graded_at: datetime, watch: Watcher) -> Findings:
    """The evidence of one submission, with its pictures. A failure of ours is evidence too.

    Args:
        graded_at: For the record.
        watch: Told how far it is.
    """
    evidence = Evidence(
        student_id=submission.student_id,
        assignment_id=run.assignment.id,
        submission_digest=submission.digest,
        graded_at=graded_at,
        received_at=submission.received_at,
        delivery=submission.delivery,
        partial=submission.partial,
        not_run=() if run.splits is not None else ("training",),
        engine=__version__,
        assignment_digest=run.assignment.digest,
    )
    found = Findings(evidence)
    try:
        _collect(run, submission, found, watch)
    except SubmissionError as error:
        found.add(status="refused", reason=str(error))
    except GraderError as error:
        found.add(status="engine_error", reason=str(error))
    except Exception as error:  # noqa: BLE001 - one submission's failure never touches another's
        found.add(status="engine_error", reason=f"The grader failed: {type(error).__name__}: {error}")
    watch(Progress(submission.student_id, Stage.DONE, 1.0))
    return found


def _collect(run: Run, submission: Submission, found: Findings, watch: Watcher) -> None:
    watch(Progress(submission.student_id, Stage.READING))
    with found.timed("reading"):
        files = accepted(submission, run.assignment, OpenedApart(run.hosts.parsers))
        found.add(missing=files.missing, refused_files=files.refused, notes=files.notes)
        if files.code is None:
            _without_code(files, found)
            return
        program = parsed(run.hosts.parsers, files.code.name, files.code.read_bytes(), run.assignment)
    found.add(
        code_file=program.file,
        near_names=program.near_names,
        omissions=program.omissions,
        forbidden=program.forbidden,
        tuned=program.tuned,
        source=program.source,
        notes=(*files.notes, *program.notes),
    )
    with found.timed("checks"):
        _check(run, program, found, hidden_seed(run.course, submission, "checks"), watch)
    if run.splits is not None:
        _train(run, run.splits, program, files, found, watch)


def _without_code(files: Intake, found: Findings) -> None:
    """Nothing to run: refused when a code file was, or when nothing else was given; else only missing."""
    suffixes = (".py", ".ipynb", ".zip")
    reasons = [file.reason for file in files.refused if file.name.lower().endswith(suffixes)]
    if files.submission.partial:
        reasons += [file.reason for file in files.refused] or [
            "It holds no code: give the .py or .ipynb file."
        ]
    if reasons:
        found.add(status="refused", reason=reasons[0])


def _check(run: Run, program: Program, found: Findings, seed: int, watch: Watcher) -> None:
    total, done = len(run.assignment.checks), 0
    student_id = found.evidence.student_id
    watch(Progress(student_id, Stage.CHECKS, 0.0, f"0 of {total}"))

    def report(finding: Finding) -> None:
        nonlocal done
        done += 1
        watch(Progress(student_id, Stage.CHECKS, done / max(total, 1), f"{done} of {total}"))

    result = judged(run.hosts.judges, run.hosts.workers, program, run.assignment, seed=seed, report=report)
    found.images |= result.images
    absent = tuple(
        f"`{name}` is not installed here; an inert stand-in took its place." for name in result.stand_ins
    )
    found.add(
        findings=result.findings,
        parameters=result.parameters,
        layers=result.layers,
        figures=result.figures,
        forbidden=(*program.forbidden, *_seen_at_run_time(result.forbidden, program)),
        notes=(*found.evidence.notes, *absent, *result.notes),
        attestation=result.attestation,
    )


def _seen_at_run_time(patterns: tuple[str, ...], program: Program) -> Iterator[ForbiddenUse]:
    """What the source did not show: a forbidden part that was constructed or called all the same."""
    if any(use.reached_from for use in program.forbidden):
        return  # the source shows it; what that consists of inside is not the student's writing
    place = (program.defined or {}).get("ViT", Place(program.file, 1))
    for pattern in patterns:
        yield ForbiddenUse(pattern, pattern, place, ("the model",))


def _train(
    run: Run, splits: Splits, program: Program, files: Intake, found: Findings, watch: Watcher
) -> None:
    submission = files.submission
    student_id = found.evidence.student_id
    forbidden = run.assignment.forbidden_patterns
    seeds = told_seed(submission), hidden_seed(run.course, submission, "order")
    job = Job(program, splits, run.assignment.limits, forbidden, run.device, *seeds)
    watch(Progress(student_id, Stage.TRAINING))

    def report(epoch: Epoch, planned: int) -> None:
        text = f"epoch {epoch.number} of {planned}, {epoch.test_accuracy:.0%}"
        watch(Progress(student_id, Stage.TRAINING, epoch.number / max(planned, 1), text))

    with found.timed("training"), run.device_turn():
        hanging = _hanging(run.assignment, found.evidence.findings)
        if hanging is not None and _never_returns(run, job):
            training = _not_trained(hanging, splits)
        else:
            hanging = None
            measured = measured_training(lambda: _training_worker(run), job, report)
            training = measured.training
            found.images |= measured.images
            found.add(
                notes=(*found.evidence.notes, *measured.notes),
                attestation=_with_gpu(found.evidence.attestation, measured.attestation),
            )
    found.add(training=training)
    if files.checkpoint is None:
        found.add(checkpoint=Checkpoint("missing"))
    elif hanging is None:
        watch(Progress(student_id, Stage.CHECKPOINT))
        with found.timed("checkpoint"):
            data = files.checkpoint.read_bytes()
            result = measured_checkpoint(lambda: _training_worker(run), job, data, files.checkpoint.name)
        found.add(checkpoint=result)


def _hanging(assignment: Assignment, findings: tuple[Finding, ...]) -> Finding | None:
    """A check that hung, of a part that training uses."""
    classes = {component.name for component in assignment.components if component.kind == "class"}
    for finding in findings:
        trains = finding.component in classes or finding.component == "train_epoch"
        if trains and finding.status is Status.FAILED and finding.diagnosis == "hangs":
            return finding
    return None


def _never_returns(run: Run, job: Job) -> bool:
    """Whether not even one epoch of training comes to its end within a short trial."""
    limits = replace(job.limits, training_seconds=min(TRIAL_SECONDS, job.limits.training_seconds))
    trial = measured_training(lambda: _training_worker(run), replace(job, limits=limits)).training
    return trial.outcome is TrainingOutcome.BUDGET and not trial.epochs


def _with_gpu(checks: Attestation, training: Attestation) -> Attestation:
    """The attestation of the checks; a training on a GPU, which widens the surface, is noted in it."""
    gpu = (training.layers or {}).get("gpu")
    if gpu is None:
        return checks
    return replace(checks, layers={**(checks.layers or {}), "gpu": gpu})


def _not_trained(finding: Finding, splits: Splits) -> Training:
    """A model that never returns cannot be trained either, and must not use up the class's time."""
    return Training(
        TrainingOutcome.FAILED,
        reason=f"It was not trained, because `{finding.component}` failed its checks: {finding.message}",
        where=finding.where,
        data=splits.name,
        classes=splits.classes,
    )


def _training_worker(run: Run) -> WorkerProcess:
    limits = run.assignment.limits
    seconds = max(int(1.5 * limits.training_seconds), 60)
    return run.hosts.workers.spawn(
        ProcessLimits.within(limits, cpu_seconds=seconds),
        gpu=run.device == "cuda",
    )


def hidden_seed(course: Course, submission: Submission, purpose: str) -> int:
    """A seed that is the same on every run, and that neither the student nor a worker can work out.

    Args:
        purpose: What it is for; from the seed of one purpose none of the others follows.
    """
    told = hmac.digest(course.secret.encode(), f"{purpose}:{submission.digest}".encode(), "sha256")
    return int.from_bytes(told[:8], "big") >> 1


def told_seed(submission: Submission) -> int:
    """The seed of what happens in a worker, which knows it: it has nothing of the course's secret."""
    return int.from_bytes(hashlib.sha256(submission.digest.encode()).digest()[:4], "big") >> 1
