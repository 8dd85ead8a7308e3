"""Trains a submission: once, three times near the threshold, and later where it takes too long."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from grader.domain.analyzed_program import Program
from grader.domain.assignment import Assignment
from grader.domain.assignment_versions import Value
from grader.domain.errors import EngineError, SandboxError
from grader.domain.evidence import (
    AttentionMap,
    Attestation,
    Checkpoint,
    Evidence,
    Finding,
    FindingKind,
    Status,
    TrainedModel,
    Training,
    TrainingOutcome,
)
from grader.domain.limits import MEGABYTE, Limits
from grader.domain.measure import Measure, StudyAgain, StudyTable
from grader.domain.program_run import Plan, plan_of
from grader.domain.submission import Intake, Submission
from grader.grading.concurrent_work import GradingStage, Progress, Watcher
from grader.grading.judging import trained_model_judged
from grader.grading.run import EvidenceBuilder, Run
from grader.grading.study_reproduction import call_of, other_values, study_again
from grader.intake.file_roles import bounded_content
from grader.kit.splits import Examples, Splits
from grader.protocol.link import WorkerProcess
from grader.sandbox.process_limits import ProcessLimits
from grader.training import (
    AnyJob,
    CalledJob,
    EpochReport,
    Job,
    Measured,
    Report,
    job_of,
    measured_checkpoint,
    measured_training,
    rehearsed,
    rehearsed_call,
    repeated_training,
    trained_once,
)

TRIAL_SECONDS = 20.0  # for the first epoch of a submission with a part that hung in the checks


WEIGHTS_OF_CALL = "The model is made and trained by calls, so the weights are kept but not tried."


def train(
    run: Run,
    data: Splits | Examples,
    program: Program,
    files: Intake,
    builder: EvidenceBuilder,
    watch: Watcher,
) -> None:
    """Train the models of a submission one after the other, and try their checkpoints.

    Args:
        data: The hidden data.
        program: What was handed in.
        files: Its files.
        builder: Collects the evidence.
        watch: Called with the progress.
    """
    hanging = _hanging(run.assignment, builder.evidence.findings)
    for model in _models(run, data, program, files.submission, builder, watch):
        stopped = model.train(hanging)
        checkpoint = files.checkpoint if model.is_first else files.further_checkpoints.get(model.measure.id)
        if checkpoint is None:
            model.keep(checkpoint=Checkpoint("missing"))
        elif not stopped:
            model.measure_checkpoint(checkpoint)
    if run.assignment.study is not None and isinstance(data, Splits):
        _study(run, run.assignment.study, data, program, files, builder, watch)


def _study(
    run: Run,
    table: StudyTable,
    data: Splits,
    program: Program,
    files: Intake,
    builder: EvidenceBuilder,
    watch: Watcher,
) -> None:
    """Train some rows of the submitted study again."""
    if table.file not in files.others:
        return
    if builder.evidence.training.outcome is not TrainingOutcome.COMPLETED:
        reason = "No row of the study was trained again: the training itself did not finish."
        builder.add(study=StudyAgain(reason=reason))
        return
    submission = files.submission

    def trained(values: Mapping[str, Any], number: int) -> tuple[float | None, str, float]:
        job = _row_job(run, table, data, program, submission, values, number)
        with run.device_slots.taken():
            measured = trained_once(lambda: _training_worker(run, job.limits), job, lambda result: None)
        training = measured.training
        why_not = "" if training.accuracy is not None else f"Trained again: {training.reason}"
        return training.accuracy, why_not, training.seconds

    watch(Progress(builder.evidence.student_id, GradingStage.TRAINING, text="rows of the study"))
    with builder.timed("study"):
        content = bounded_content(files.others[table.file], run.assignment.limits.file_mb * MEGABYTE)
        result = study_again(
            table,
            content,
            secret=run.draw(submission).study_key,
            images=len(data.test_labels),
            trained=trained,
        )
    builder.add(study=result)


def _row_job(
    run: Run,
    table: StudyTable,
    data: Splits,
    program: Program,
    submission: Submission,
    values: Mapping[str, Any],
    number: int,
) -> AnyJob:
    """How a row of a study is trained: by the student's own script, with its loaders, if there is one.

    Its images are not perturbed: distorted images are another task, for which other values are good. A
    program that memorized images gains nothing here, since no points depend on a row's accuracy.
    """
    first = run.assignment.measures[0]
    if first.call is not None:
        return _jobs(run, data, program, submission, call_of(run.assignment, table, values))(number)
    job = _jobs(run, data, program.read_for(first.id), submission, first)(number)
    return replace(job, other=other_values(table, values), perturbs=False) if isinstance(job, Job) else job


def waits_for_more_time(assignment: Assignment, evidence: Evidence) -> bool:
    """Whether a training that our limit stopped gets more time once all others are done."""
    limits = assignment.limits
    if limits.queued_training_seconds <= limits.training_seconds:
        return False
    return any(_waits_for_time(training, limits) for training in evidence.trainings)


def train_longer(
    run: Run,
    data: Splits | Examples,
    program: Program,
    submission: Submission,
    builder: EvidenceBuilder,
    watch: Watcher,
) -> None:
    """Train the models that our limit stopped again from the start, with the larger limit."""
    for model in _models(run, data, program, submission, builder, watch):
        if _waits_for_time(model.recorded.training, run.assignment.limits):
            model.train_longer()


def _waits_for_time(training: Training, limits: Limits) -> bool:
    times = [attempt.projected_seconds for attempt in training.stopped]
    return bool(times) and all(
        seconds is not None and seconds <= limits.queued_training_seconds for seconds in times
    )


def one_training(
    run: Run, splits: Splits, program: Program, submission: Submission, report: Report
) -> Training:
    """The result of one training of a submission's first model."""
    job = _jobs(run, splits, program, submission, run.assignment.measures[0])(1)
    with run.device_slots.taken():
        return trained_once(lambda: _training_worker(run, job.limits), job, report).training


def _jobs(
    run: Run, data: Splits | Examples, program: Program, submission: Submission, measure: Measure
) -> Callable[[int], AnyJob]:
    """Maps the number of a model's training, 1-based, to its job; the jobs differ only in their seeds."""
    limits = run.assignment.limits
    further = "" if measure is run.assignment.measures[0] else measure.id
    drawn = run.draw(submission)

    def job(number: int) -> AnyJob:
        seeds = drawn.training(number, further)
        return job_of(
            run.assignment,
            measure,
            data,
            program=program,
            limits=limits,
            forbidden=run.assignment.forbidden_patterns,
            device=run.device,
            seed=seeds.worker,
            order_seed=seeds.order,
            gpu_memory_mb=limits.gpu_memory_mb,
        )

    return job


def _models(
    run: Run,
    data: Splits | Examples,
    program: Program,
    submission: Submission,
    builder: EvidenceBuilder,
    watch: Watcher,
) -> Iterator["_Model"]:
    """The models of a submission that are measured."""
    count = len(run.assignment.measures)
    for index, measure in enumerate(run.assignment.measures):
        jobs = _jobs(run, data, program.read_for(measure.id), submission, measure)

        def watched(progress: Progress, done: int = index, title: str = measure.title) -> None:
            text = ", ".join(filter(None, (title, progress.text)))
            watch(replace(progress, share=(done + progress.share) / count, text=text))

        yield _Model(run, measure, jobs, builder, watched if count > 1 else watch, is_first=not index)


@dataclass(frozen=True)
class _Model:
    """One of the models of a submission, and the builder that collects the evidence about it.

    Attributes:
        jobs: Its trainings, by their number, 1-based.
    """

    run: Run
    measure: Measure
    jobs: Callable[[int], AnyJob]
    builder: EvidenceBuilder
    watch: Watcher
    is_first: bool

    @property
    def recorded(self) -> TrainedModel:
        """The evidence about it so far."""
        evidence = self.builder.evidence
        if self.is_first:
            return TrainedModel(evidence.plan, evidence.training, evidence.checkpoint)
        return evidence.further.get(self.measure.id, TrainedModel())

    def keep(self, **values: Any) -> None:
        """Add to the evidence about it."""
        if self.is_first:
            self.builder.add(**values)
        else:
            further = self.builder.evidence.further
            self.builder.add(further={**further, self.measure.id: replace(self.recorded, **values)})

    def train(self, hanging: Finding | None) -> bool:
        """Train it, unless a part that it needs hangs.

        Args:
            hanging: A check that hung.

        Returns:
            Whether it was given up for that reason.
        """
        self._tell(GradingStage.TRAINING)
        with self.builder.timed("training"):
            if hanging is not None and self._never_returns():
                self.keep(training=_not_trained(hanging, self.jobs(1)))
                return True
            self._rehearse()
            self._measure(self.jobs)
        return False

    def train_longer(self) -> None:
        """Train it with the larger limit."""
        limits = self.run.assignment.limits
        longer = replace(limits, training_seconds=limits.queued_training_seconds)
        self._tell(GradingStage.TRAINING, "with more time")
        with self.builder.timed("training"):
            self._measure(lambda number: replace(self.jobs(number), limits=longer))

    def measure_checkpoint(self, path: Path) -> None:
        """Test the weights that were handed in."""
        job = self.jobs(1)
        if isinstance(job, CalledJob):
            self.keep(checkpoint=Checkpoint("not_tried", WEIGHTS_OF_CALL))
            return
        self._tell(GradingStage.CHECKPOINT)
        with self.builder.timed("checkpoint"), self.run.device_slots.taken():
            data = path.read_bytes()
            result = measured_checkpoint(lambda: _training_worker(self.run, job.limits), job, data, path.name)
        self.keep(checkpoint=result)

    def _tell(self, stage: GradingStage, text: str = "") -> None:
        self.watch(Progress(self.builder.evidence.student_id, stage, text=text))

    def _rehearse(self) -> None:
        """Try the training on a few synthetic images, so that everybody can read what is trained."""
        job = self.jobs(1)
        if isinstance(job, CalledJob):  # what is called is the same for all, and assignment.toml says it
            with self.run.device_slots.taken():
                stages = rehearsed_call(lambda: _training_worker(self.run, job.limits), job)
            self.keep(plan=Plan(rehearsal=stages))
            return
        if job.program.script.missing:
            self.keep(plan=plan_of(job.program.script))
            return
        with self.run.device_slots.taken():
            rehearsal = rehearsed(lambda: _training_worker(self.run, job.limits), job)
        self.keep(plan=plan_of(job.program.script, rehearsal))

    def _never_returns(self) -> bool:
        """Whether not even one epoch of training ends within a short trial."""
        job = self.jobs(1)
        if isinstance(job, CalledJob):
            return False  # the end of its first epoch cannot be observed
        limits = replace(job.limits, training_seconds=min(TRIAL_SECONDS, job.limits.training_seconds))
        with self.run.device_slots.taken():
            trial = measured_training(
                lambda: _training_worker(self.run, limits), replace(job, limits=limits)
            ).training
        return trial.outcome is TrainingOutcome.BUDGET and not trial.epochs

    def _measure(self, jobs: Callable[[int], AnyJob]) -> None:
        """Train it, and keep the result."""
        rehearsal = self.recorded.plan.rehearsal
        planned = rehearsal.epochs if rehearsal is not None else None
        item = self.run.assignment.item_measured(self.measure.id)
        threshold = item.threshold if item is not None else None
        limits, run = jobs(1).limits, self.run

        def report(came: EpochReport) -> None:
            again = f", seed {came.run} of {came.runs}" if came.run > 1 else ""
            text = f"epoch {came.epoch.number} of {came.planned}{again}, {came.epoch.test_accuracy:.0%}"
            share = (came.run - 1 + came.epoch.number / max(came.planned, 1)) / came.runs
            self.watch(Progress(self.builder.evidence.student_id, GradingStage.TRAINING, share, text))

        def measured_with(**changes: Any) -> Measured:
            return repeated_training(
                lambda: _training_worker(run, limits),
                lambda number: _changed(jobs(number), planned, changes),
                threshold,
                report,
                scale=self.measure.scale,
            )

        with run.device_slots.taken():
            measured = measured_with()
        if measured.lacked_gpu_memory:  # alone, so that neither it nor any other training suffers
            self._tell(GradingStage.TRAINING, "alone on the GPU")
            with run.device_slots.taken(alone=True):
                measured = measured_with(gpu_memory_mb=None)
        if not self.is_first:
            measured = _renamed(measured, self.measure.id)
        self.builder.images |= measured.images
        self.keep(
            training=_with_objections(run, self.measure, jobs(1), measured, self.builder.evidence.variant)
        )
        self.builder.add(attestation=_with_gpu(self.builder.evidence.attestation, measured.attestation))
        self.builder.add_watched(run.assignment, jobs(1).program, measured.watched)


def _renamed(measured: Measured, measure: str) -> Measured:
    """A training whose pictures have names that no other model's pictures have."""

    def name(image: str) -> str:
        return f"{measure}-{image}"

    training = replace(
        measured.training,
        predictions=tuple(replace(part, image=name(part.image)) for part in measured.training.predictions),
        attention=tuple(
            AttentionMap(name(part.prediction), name(part.last_layer), name(part.rollout))
            for part in measured.training.attention
        ),
    )
    return replace(
        measured, training=training, images={name(key): image for key, image in measured.images.items()}
    )


def _with_objections(
    run: Run, measure: Measure, job: AnyJob, measured: Measured, values: Mapping[str, Value]
) -> Training:
    """The training, with a judge's objections to the trained model."""
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
            component=_checked_part(measure) if len(run.assignment.measures) > 1 else None,
            values=values,
        )
        own_findings = [finding for finding in findings if finding.because is None]
        objections = tuple(f"The trained model: {finding.message}" for finding in own_findings)
    except SandboxError:
        raise
    except EngineError as error:
        objections = (f"It is unknown whether the trained model is the one that was checked: {error}",)
    return replace(training, objections=(*training.objections, *objections))


def _checked_part(measure: Measure) -> str | None:
    """The graded name of the model that a measure trains."""
    return measure.roles.model if measure.call is None else measure.call.model


def _hanging(assignment: Assignment, findings: tuple[Finding, ...]) -> Finding | None:
    """The finding of a check that hung, on a part that training uses."""
    for finding in findings:
        hangs = finding.status is Status.FAILED and finding.kind is FindingKind.HANGS
        if hangs and finding.component in assignment.trains:
            return finding
    return None


def _with_gpu(checks: Attestation, training: Attestation) -> Attestation:
    """The attestation of the checks; a training on a GPU, which widens the surface, is noted in it."""
    gpu = (training.layers or {}).get("gpu")
    if gpu is None:
        return checks
    return replace(checks, layers={**(checks.layers or {}), "gpu": gpu})


def _changed(job: AnyJob, planned: int | None, changes: dict[str, Any]) -> AnyJob:
    """A job with other limits, and with the number of epochs that its rehearsal planned."""
    if isinstance(job, Job):
        return replace(job, planned=planned, **changes)
    return replace(job, **changes)


def _not_trained(finding: Finding, job: AnyJob) -> Training:
    """A model that never returns cannot be trained either, and must not use up the class's time."""
    return Training(
        TrainingOutcome.FAILED,
        reason=f"It was not trained, because `{finding.component}` failed its checks: {finding.message}",
        where=finding.where,
        data=job.data,
        classes=job.classes,
    )


def _training_worker(run: Run, limits: Limits) -> WorkerProcess:
    seconds = max(int(1.5 * limits.training_seconds), 60)
    return run.hosts.workers.spawn(
        ProcessLimits.within(limits, cpu_seconds=seconds),
        gpu=run.device == "cuda",
    )
