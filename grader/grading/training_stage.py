"""The training of one submission: once, three times near the threshold, later where it takes too long."""

from collections.abc import Callable
from dataclasses import replace

from grader.domain.assignment import Assignment, Limits
from grader.domain.errors import EngineError
from grader.domain.evidence import (
    Attestation,
    Checkpoint,
    Evidence,
    Finding,
    FindingKind,
    Status,
    Training,
    TrainingOutcome,
    UnfinishedRun,
)
from grader.domain.plan import plan_of
from grader.domain.program import Program
from grader.domain.submission import Intake, Submission
from grader.grading.judging import trained_model_judged
from grader.grading.progress import GradingStage, Progress, Watcher
from grader.grading.run import EvidenceBuilder, Run, hidden_seed, told_seed
from grader.kit.splits import Splits
from grader.protocol.link import WorkerProcess
from grader.sandbox.limits import ProcessLimits
from grader.training import (
    EpochReport,
    Job,
    Measured,
    Report,
    measured_checkpoint,
    measured_training,
    rehearsed,
    repeated_training,
)

TRIAL_SECONDS = 20.0  # for the first epoch of a submission of which a part hung in the checks


def train(
    run: Run, splits: Splits, program: Program, files: Intake, found: EvidenceBuilder, watch: Watcher
) -> None:
    """Train a submission and try its checkpoint.

    Args:
        splits: The hidden split.
        program: What was handed in.
        files: Its files.
        found: Takes the evidence.
        watch: Told how far it is.
    """
    jobs = _jobs(run, splits, program, files.submission)
    job = jobs(1)
    watch(Progress(found.evidence.student_id, GradingStage.TRAINING))
    with found.timed("training"):
        hanging = _hanging(run.assignment, found.evidence.findings)
        if hanging is not None and _never_returns(run, job):
            found.add(training=_not_trained(hanging, splits))
        else:
            hanging = None
            _rehearse(run, job, found)
            _measure(run, _planned(jobs, found.evidence), found, watch)
    if files.checkpoint is None:
        found.add(checkpoint=Checkpoint("missing"))
    elif hanging is None:
        watch(Progress(found.evidence.student_id, GradingStage.CHECKPOINT))
        with found.timed("checkpoint"), run.turns.taken():
            data, name = files.checkpoint.read_bytes(), files.checkpoint.name
            result = measured_checkpoint(lambda: _training_worker(run, job.limits), job, data, name)
        found.add(checkpoint=result)


def waits_for_more_time(assignment: Assignment, evidence: Evidence) -> bool:
    """Whether a training that our limit stopped gets more time when all others are done."""
    limits = assignment.limits
    if limits.queued_training_seconds <= limits.training_seconds:
        return False
    trainings: tuple[Training | UnfinishedRun, ...] = (evidence.training, *evidence.training.unfinished)
    stopped = [one.projected_seconds for one in trainings if one.outcome is TrainingOutcome.BUDGET]
    return bool(stopped) and all(
        seconds is not None and seconds <= limits.queued_training_seconds for seconds in stopped
    )


def train_longer(
    run: Run, splits: Splits, program: Program, submission: Submission, found: EvidenceBuilder, watch: Watcher
) -> None:
    """Train a submission again, from its beginning, with the larger limit."""
    jobs, limits = _jobs(run, splits, program, submission), run.assignment.limits
    longer = replace(limits, training_seconds=limits.queued_training_seconds)
    watch(Progress(submission.student_id, GradingStage.TRAINING, text="with more time"))
    with found.timed("training"):
        _measure(
            run,
            _planned(lambda number: replace(jobs(number), limits=longer), found.evidence),
            found,
            watch,
        )


def trained_once(
    run: Run, splits: Splits, program: Program, submission: Submission, report: Report
) -> Training:
    """What one training of a submission gives."""
    job = _jobs(run, splits, program, submission)(1)
    with run.turns.taken():
        return measured_training(lambda: _training_worker(run, job.limits), job, report).training


def _jobs(run: Run, splits: Splits, program: Program, submission: Submission) -> Callable[[int], Job]:
    """The job of each of a submission's trainings, by its number, 1-based: only the seeds differ."""
    forbidden, limits = run.assignment.forbidden_patterns, run.assignment.limits

    def job(number: int) -> Job:
        seeds = (
            told_seed(run.course, submission, number),
            hidden_seed(run.course, submission, "order", number),
        )
        return Job(program, splits, limits, forbidden, run.device, *seeds, gpu_memory_mb=limits.gpu_memory_mb)

    return job


def _rehearse(run: Run, job: Job, found: EvidenceBuilder) -> None:
    """Try the training on a few made-up images, so that everybody can read what is trained."""
    if job.program.script.missing:
        found.add(plan=plan_of(job.program.script))
        return
    with run.turns.taken():
        rehearsal = rehearsed(lambda: _training_worker(run, job.limits), job)
    found.add(plan=plan_of(job.program.script, rehearsal))


def _planned(jobs: Callable[[int], Job], evidence: Evidence) -> Callable[[int], Job]:
    """The jobs, with the number of epochs that a rehearsal came to."""
    rehearsal = evidence.plan.rehearsal
    planned = rehearsal.epochs if rehearsal is not None else None
    return lambda number: replace(jobs(number), planned=planned)


def _measure(run: Run, jobs: Callable[[int], Job], found: EvidenceBuilder, watch: Watcher) -> None:
    student_id = found.evidence.student_id

    def report(told: EpochReport) -> None:
        again = f", seed {told.run} of {told.runs}" if told.run > 1 else ""
        text = f"epoch {told.epoch.number} of {told.planned}{again}, {told.epoch.test_accuracy:.0%}"
        share = (told.run - 1 + told.epoch.number / max(told.planned, 1)) / told.runs
        watch(Progress(student_id, GradingStage.TRAINING, share, text))

    item = run.assignment.measured_item
    threshold = item.threshold if item is not None else None
    limits = jobs(1).limits
    with run.turns.taken():
        measured = repeated_training(lambda: _training_worker(run, limits), jobs, threshold, report)
    if measured.crowded:  # no other is to suffer from it, nor it from others
        watch(Progress(student_id, GradingStage.TRAINING, text="alone on the GPU"))
        with run.turns.taken(alone=True):
            measured = repeated_training(
                lambda: _training_worker(run, limits),
                lambda number: replace(jobs(number), gpu_memory_mb=None),
                threshold,
                report,
            )
    found.images |= measured.images
    found.add(
        training=_looked_at_again(run, jobs(1), measured),
        attestation=_with_gpu(found.evidence.attestation, measured.attestation),
    )
    found.add_watched(run.assignment, jobs(1).program, measured.watched)


def _looked_at_again(run: Run, job: Job, measured: Measured) -> Training:
    """The training, with what a judge objects to in the model that came of it."""
    training = replace(measured.training, notes=tuple(dict.fromkeys(measured.notes)))
    if measured.trained is None:
        return training
    try:
        findings = trained_model_judged(
            run.hosts.judges,
            run.hosts.workers,
            job.program,
            run.assignment,
            measured.trained,
            seed=job.order_seed or 0,
        )
        objections = tuple(f"The trained model: {finding.message}" for finding in findings)
    except EngineError as error:
        objections = (f"Whether the trained model is the one that was checked is unknown: {error}",)
    return replace(training, objections=(*training.objections, *objections))


def _hanging(assignment: Assignment, findings: tuple[Finding, ...]) -> Finding | None:
    """A check that hung, of a part that training uses."""
    for finding in findings:
        hangs = finding.status is Status.FAILED and finding.kind is FindingKind.HANGS
        if hangs and finding.component in assignment.trains:
            return finding
    return None


def _never_returns(run: Run, job: Job) -> bool:
    """Whether not even one epoch of training comes to its end within a short trial."""
    limits = replace(job.limits, training_seconds=min(TRIAL_SECONDS, job.limits.training_seconds))
    with run.turns.taken():
        trial = measured_training(lambda: _training_worker(run, limits), replace(job, limits=limits)).training
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


def _training_worker(run: Run, limits: Limits) -> WorkerProcess:
    seconds = max(int(1.5 * limits.training_seconds), 60)
    return run.hosts.workers.spawn(
        ProcessLimits.within(limits, cpu_seconds=seconds),
        gpu=run.device == "cuda",
    )
