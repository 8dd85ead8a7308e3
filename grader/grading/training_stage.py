"""The training of one submission: once, three times near the threshold, later where it takes too long."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from grader.domain.analyzed_program import Program
from grader.domain.assignment import MEGABYTE, Assignment, Limits
from grader.domain.assignment_versions import Value
from grader.domain.errors import EngineError
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
    UnfinishedRun,
)
from grader.domain.measure import Measure, StudyAgain, StudyTable
from grader.domain.program_run import Plan, plan_of
from grader.domain.submission import Intake, Submission
from grader.grading.concurrent_work import GradingStage, Progress, Watcher
from grader.grading.judging import trained_model_judged
from grader.grading.run import EvidenceBuilder, Run, hidden_seed, told_seed
from grader.grading.study_reproduction import call_of, other_values, study_again
from grader.intake.acceptance import bounded_content
from grader.kit.splits import Examples, Splits
from grader.protocol.link import WorkerProcess
from grader.sandbox.limits import ProcessLimits
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

TRIAL_SECONDS = 20.0  # for the first epoch of a submission of which a part hung in the checks


WEIGHTS_OF_CALL = "The model is made and trained by calls, so that weights are kept and not tried."


def train(
    run: Run, data: Splits | Examples, program: Program, files: Intake, found: EvidenceBuilder, watch: Watcher
) -> None:
    """Train the models of a submission one after the other, and try their checkpoints.

    Args:
        data: The hidden data.
        program: What was handed in.
        files: Its files.
        found: Takes the evidence.
        watch: Told how far it is.
    """
    hanging = _hanging(run.assignment, found.evidence.findings)
    for model in _models(run, data, program, files.submission, found, watch):
        stopped = model.train(hanging)
        checkpoint = files.checkpoint if model.is_first else files.further_checkpoints.get(model.measure.id)
        if checkpoint is None:
            model.keep(checkpoint=Checkpoint("missing"))
        elif not stopped:
            model.measure_checkpoint(checkpoint)
    if run.assignment.study is not None and isinstance(data, Splits):
        _study(run, run.assignment.study, data, program, files, found, watch)


def _study(
    run: Run,
    table: StudyTable,
    data: Splits,
    program: Program,
    files: Intake,
    found: EvidenceBuilder,
    watch: Watcher,
) -> None:
    """Train some rows of the study that was handed in again."""
    if table.file not in files.others:
        return
    if found.evidence.training.outcome is not TrainingOutcome.COMPLETED:
        reason = "No row of the study was trained again: the training itself did not end."
        found.add(study=StudyAgain(reason=reason))
        return
    submission = files.submission

    def trained(values: Mapping[str, Any], number: int) -> tuple[float | None, str, float]:
        job = _row_job(run, table, data, program, submission, values, number)
        with run.turns.taken():
            measured = trained_once(lambda: _training_worker(run, job.limits), job, lambda told: None)
        training = measured.training
        why_not = "" if training.accuracy is not None else f"Trained again: {training.reason}"
        return training.accuracy, why_not, training.seconds

    watch(Progress(found.evidence.student_id, GradingStage.TRAINING, text="rows of the study"))
    with found.timed("study"):
        content = bounded_content(files.others[table.file], run.assignment.limits.file_mb * MEGABYTE)
        told = study_again(
            table,
            content,
            secret=f"{run.course.secret} {submission.student_id}",
            images=len(data.test_labels),
            trained=trained,
        )
    found.add(study=told)


def _row_job(
    run: Run,
    table: StudyTable,
    data: Splits,
    program: Program,
    submission: Submission,
    values: Mapping[str, Any],
    number: int,
) -> AnyJob:
    """How a row of a study is trained: by the student's own script, with its loaders, where there is one.

    Its images are left as they are: bent and moved ones are another task, in which other values are good.
    What a program has by heart gains nothing here, since nobody's points grow with a row's accuracy.
    """
    first = run.assignment.measures[0]
    if first.call is not None:
        return _jobs(run, data, program, submission, call_of(run.assignment, table, values))(number)
    job = _jobs(run, data, program.read_for(first.id), submission, first)(number)
    return replace(job, other=other_values(table, values), perturbs=False) if isinstance(job, Job) else job


def waits_for_more_time(assignment: Assignment, evidence: Evidence) -> bool:
    """Whether a training that our limit stopped gets more time when all others are done."""
    limits = assignment.limits
    if limits.queued_training_seconds <= limits.training_seconds:
        return False
    return any(_waits(training, limits) for training in evidence.trainings)


def train_longer(
    run: Run,
    data: Splits | Examples,
    program: Program,
    submission: Submission,
    found: EvidenceBuilder,
    watch: Watcher,
) -> None:
    """Train again, from its beginning, with the larger limit, what our limit stopped."""
    for model in _models(run, data, program, submission, found, watch):
        if _waits(model.known.training, run.assignment.limits):
            model.train_longer()


def _waits(training: Training, limits: Limits) -> bool:
    every: tuple[Training | UnfinishedRun, ...] = (training, *training.unfinished)
    stopped = [each.projected_seconds for each in every if each.outcome is TrainingOutcome.BUDGET]
    return bool(stopped) and all(
        seconds is not None and seconds <= limits.queued_training_seconds for seconds in stopped
    )


def one_training(
    run: Run, splits: Splits, program: Program, submission: Submission, report: Report
) -> Training:
    """What one training of a submission's first model gives."""
    job = _jobs(run, splits, program, submission, run.assignment.measures[0])(1)
    with run.turns.taken():
        return trained_once(lambda: _training_worker(run, job.limits), job, report).training


def _jobs(
    run: Run, data: Splits | Examples, program: Program, submission: Submission, measure: Measure
) -> Callable[[int], AnyJob]:
    """The job of each of a model's trainings, by its number, 1-based: only the seeds differ."""
    limits = run.assignment.limits
    further = "" if measure is run.assignment.measures[0] else measure.id

    def job(number: int) -> AnyJob:
        return job_of(
            run.assignment,
            measure,
            data,
            program=program,
            limits=limits,
            forbidden=run.assignment.forbidden_patterns,
            device=run.device,
            seed=told_seed(run.course, submission, number, further),
            order_seed=hidden_seed(run.course, submission, f"order {further}".strip(), number),
            gpu_memory_mb=limits.gpu_memory_mb,
        )

    return job


def _models(
    run: Run,
    data: Splits | Examples,
    program: Program,
    submission: Submission,
    found: EvidenceBuilder,
    watch: Watcher,
) -> Iterator["_Model"]:
    """The models of a submission that are measured."""
    count = len(run.assignment.measures)
    for index, measure in enumerate(run.assignment.measures):
        jobs = _jobs(run, data, program.read_for(measure.id), submission, measure)

        def watched(told: Progress, done: int = index, title: str = measure.title) -> None:
            text = ", ".join(filter(None, (title, told.text)))
            watch(replace(told, share=(done + told.share) / count, text=text))

        yield _Model(run, measure, jobs, found, watched if count > 1 else watch, is_first=not index)


@dataclass(frozen=True)
class _Model:
    """One of the models of a submission, and where what is found out of it is kept.

    Attributes:
        jobs: Its trainings, by their number, 1-based.
    """

    run: Run
    measure: Measure
    jobs: Callable[[int], AnyJob]
    found: EvidenceBuilder
    watch: Watcher
    is_first: bool

    @property
    def known(self) -> TrainedModel:
        """What was found out of it so far."""
        evidence = self.found.evidence
        if self.is_first:
            return TrainedModel(evidence.plan, evidence.training, evidence.checkpoint)
        return evidence.further.get(self.measure.id, TrainedModel())

    def keep(self, **values: Any) -> None:
        """Keep what was found out of it."""
        if self.is_first:
            self.found.add(**values)
        else:
            further = self.found.evidence.further
            self.found.add(further={**further, self.measure.id: replace(self.known, **values)})

    def train(self, hanging: Finding | None) -> bool:
        """Train it, unless a part that it needs hangs.

        Args:
            hanging: A check that hung.

        Returns:
            Whether it was given up for that.
        """
        self._tell(GradingStage.TRAINING)
        with self.found.timed("training"):
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
        with self.found.timed("training"):
            self._measure(lambda number: replace(self.jobs(number), limits=longer))

    def measure_checkpoint(self, path: Path) -> None:
        """Try the weights that were handed in."""
        job = self.jobs(1)
        if isinstance(job, CalledJob):
            self.keep(checkpoint=Checkpoint("not_tried", WEIGHTS_OF_CALL))
            return
        self._tell(GradingStage.CHECKPOINT)
        with self.found.timed("checkpoint"), self.run.turns.taken():
            data = path.read_bytes()
            result = measured_checkpoint(lambda: _training_worker(self.run, job.limits), job, data, path.name)
        self.keep(checkpoint=result)

    def _tell(self, stage: GradingStage, text: str = "") -> None:
        self.watch(Progress(self.found.evidence.student_id, stage, text=text))

    def _rehearse(self) -> None:
        """Try the training on a few made-up images, so that everybody can read what is trained."""
        job = self.jobs(1)
        if isinstance(job, CalledJob):  # what is called is the same for all, and assignment.toml says it
            with self.run.turns.taken():
                stages = rehearsed_call(lambda: _training_worker(self.run, job.limits), job)
            self.keep(plan=Plan(rehearsal=stages))
            return
        if job.program.script.missing:
            self.keep(plan=plan_of(job.program.script))
            return
        with self.run.turns.taken():
            rehearsal = rehearsed(lambda: _training_worker(self.run, job.limits), job)
        self.keep(plan=plan_of(job.program.script, rehearsal))

    def _never_returns(self) -> bool:
        """Whether not even one epoch of training comes to its end within a short trial."""
        job = self.jobs(1)
        if isinstance(job, CalledJob):
            return False  # how long it takes to the first epoch is not seen
        limits = replace(job.limits, training_seconds=min(TRIAL_SECONDS, job.limits.training_seconds))
        with self.run.turns.taken():
            trial = measured_training(
                lambda: _training_worker(self.run, limits), replace(job, limits=limits)
            ).training
        return trial.outcome is TrainingOutcome.BUDGET and not trial.epochs

    def _measure(self, jobs: Callable[[int], AnyJob]) -> None:
        """Train it, and keep what came of it."""
        rehearsal = self.known.plan.rehearsal
        planned = rehearsal.epochs if rehearsal is not None else None
        item = self.run.assignment.item_measured(self.measure.id)
        threshold = item.threshold if item is not None else None
        limits, run = jobs(1).limits, self.run

        def report(told: EpochReport) -> None:
            again = f", seed {told.run} of {told.runs}" if told.run > 1 else ""
            text = f"epoch {told.epoch.number} of {told.planned}{again}, {told.epoch.test_accuracy:.0%}"
            share = (told.run - 1 + told.epoch.number / max(told.planned, 1)) / told.runs
            self.watch(Progress(self.found.evidence.student_id, GradingStage.TRAINING, share, text))

        def measured_with(**changes: Any) -> Measured:
            return repeated_training(
                lambda: _training_worker(run, limits),
                lambda number: _changed(jobs(number), planned, changes),
                threshold,
                report,
                scale=self.measure.scale,
            )

        with run.turns.taken():
            measured = measured_with()
        if measured.crowded:  # no other is to suffer from it, nor it from others
            self._tell(GradingStage.TRAINING, "alone on the GPU")
            with run.turns.taken(alone=True):
                measured = measured_with(gpu_memory_mb=None)
        if not self.is_first:
            measured = _renamed(measured, self.measure.id)
        self.found.images |= measured.images
        self.keep(
            training=_looked_at_again(run, self.measure, jobs(1), measured, self.found.evidence.variant)
        )
        self.found.add(attestation=_with_gpu(self.found.evidence.attestation, measured.attestation))
        self.found.add_watched(run.assignment, jobs(1).program, measured.watched)


def _renamed(measured: Measured, measure: str) -> Measured:
    """A training whose pictures have names that no other model's have."""

    def name(image: str) -> str:
        return f"{measure}-{image}"

    training = replace(
        measured.training,
        predictions=tuple(replace(each, image=name(each.image)) for each in measured.training.predictions),
        attention=tuple(
            AttentionMap(name(each.prediction), name(each.last_layer), name(each.rollout))
            for each in measured.training.attention
        ),
    )
    return replace(
        measured, training=training, images={name(key): image for key, image in measured.images.items()}
    )


def _looked_at_again(
    run: Run, measure: Measure, job: AnyJob, measured: Measured, values: Mapping[str, Value]
) -> Training:
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
            component=measure.roles.model if len(run.assignment.measures) > 1 else None,
            values=values,
        )
        told = [finding for finding in findings if finding.because is None]
        objections = tuple(f"The trained model: {finding.message}" for finding in told)
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


def _with_gpu(checks: Attestation, training: Attestation) -> Attestation:
    """The attestation of the checks; a training on a GPU, which widens the surface, is noted in it."""
    gpu = (training.layers or {}).get("gpu")
    if gpu is None:
        return checks
    return replace(checks, layers={**(checks.layers or {}), "gpu": gpu})


def _changed(job: AnyJob, planned: int | None, changes: dict[str, Any]) -> AnyJob:
    """A job with other limits, and with what a rehearsal of it came to."""
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
