"""Trains and measures an assignment's reference and its wrong versions: is a threshold fair?"""

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path

from grader.course.assignment_file import read_assignment
from grader.course.homework_versions import HomeworkVersion, Kind, homework_versions
from grader.course.locate import located_course
from grader.domain.analyzed_program import line_at, place_of
from grader.domain.assignment import Assignment, RubricItem
from grader.domain.assignment_versions import Value, shown_values, submission_seed, training_seed
from grader.domain.errors import UsageError
from grader.domain.evidence import Training, TrainingOutcome
from grader.domain.limits import Limits
from grader.domain.measure import Measure
from grader.grading.hidden_splits import HiddenData, hidden_data
from grader.kit import Examples, Splits
from grader.sandbox.host_client import Host
from grader.sandbox.process_limits import ProcessLimits
from grader.scoring import measured_points
from grader.training import AnyJob, job_of, repeated_training
from grader.validation.trials import Trial, chosen, host_of_workers, program_of, value_sets

SALT = "validation"  # in place of a class's salt: what is measured here is not an attempt
DEVIATIONS = 2  # full points may begin this many deviations below the reference's mean
TOLERANCE = 0.01  # of a stated reference, beyond the variation between seeds


@dataclass(frozen=True)
class MeasuringRequest:
    """A request to train and measure versions.

    Attributes:
        only: The versions of this name, in which `*` stands for anything.
        data: The data set's file or folder, or `synthetic`.
        seeds: How many times each is trained.
        course: The course's folder; None: found upward from the working directory.
        all_drawn_values: Whether to train with each choice of each drawn value, with the others at their
            first choice, and not only with this term's values.
    """

    assignment_id: str
    only: str
    data: str
    seeds: int
    course: Path | None = None
    all_drawn_values: bool = False


@dataclass(frozen=True)
class MeasuredVersion:
    """The measurement of a version.

    Attributes:
        version: The version.
        measure: The measure.
        training: The first of its trainings, with the measurements of all.
        item: The rubric item that the measure decides, if there is one.
        drawn: The drawn values with which it was made.
        is_one_of_many: Whether it is also made with other values, which may reach less: a stated reference
            is one number for all of them, so that this version may reach more.
    """

    version: HomeworkVersion
    measure: Measure
    training: Training
    item: RubricItem | None
    drawn: Mapping[str, Value] = field(default_factory=dict)
    is_one_of_many: bool = False

    @property
    def title(self) -> str:
        """Its name, with the drawn values: `reference (heads = 2)`."""
        return f"{self.version.name} ({shown_values(self.drawn)})" if self.drawn else self.version.name

    @property
    def values(self) -> tuple[float, ...]:
        """The measurements, one for each completed training."""
        training = self.training
        if training.outcome is not TrainingOutcome.COMPLETED or training.measured is None:
            return ()
        return training.runs or (training.measured,)

    @property
    def deviation(self) -> float | None:
        """The standard deviation over the seeds; None for a single one."""
        return statistics.stdev(self.values) if len(self.values) > 1 else None

    @property
    def points(self) -> float | None:
        """Its points; None if nothing was measured or no item depends on it."""
        if self.item is None or not self.values:
            return None
        return measured_points(self.item, self.training)

    @property
    def full_from(self) -> float | None:
        """The value from which full points may begin: two standard deviations worse than the mean."""
        if self.deviation is None:
            return None
        mean, reach = statistics.mean(self.values), DEVIATIONS * self.deviation
        return mean + reach if self.measure.scale.lower_is_better else mean - reach

    @property
    def faults(self) -> tuple[str, ...]:
        """Faults of the assignment, in sentences: the reference earns less, or another value is stated."""
        if self.version.kind is not Kind.REFERENCE:
            return ()
        return tuple(self._faults())

    def _faults(self) -> Iterator[str]:
        name = f"The {self.title}"
        if not self.values:
            yield f"{name} is not measured: {why_unmeasured(self.version, self.training)}"
            return
        scale, mean = self.measure.scale, statistics.mean(self.values)
        if self.item is not None and self.points is not None and self.points < self.item.points:
            yield (
                f"{name} earns {self.points:g} of {self.item.points:g} points in {self.item.id}. Move "
                "its breakpoints, or give it more training."
            )
        stated = self.measure.reference
        if stated is not None:
            reach = DEVIATIONS * (self.deviation or 0.0) + TOLERANCE * max(abs(stated), abs(mean))
            is_better = mean < stated if scale.lower_is_better else mean > stated
            if abs(mean - stated) > reach and not (self.is_one_of_many and is_better):
                yield (
                    f"{name} reaches {scale.shown(mean)}, and assignment.toml states "
                    f"{scale.shown(stated)}. Write reference = {mean:.4g} in [[measure]] "
                    f"'{self.measure.id}'."
                )


def measured_versions(
    request: MeasuringRequest, *, done: Callable[[MeasuredVersion], None]
) -> Sequence[MeasuredVersion]:
    """Train versions of an assignment, and measure them like submissions.

    Args:
        done: Called with each as soon as it is measured.

    Raises:
        UsageError: There is no such assignment, version or data, or nothing is measured.
        CourseError: A file of the course is malformed.
        EngineError: The solution cannot be loaded.
    """
    course = located_course(request.course)
    assignment = read_assignment(course.reference(request.assignment_id))
    if assignment.data is None:
        raise UsageError(f"{assignment.id} has no [data], so nothing is measured. Leave out --train.")
    sets = value_sets(course, assignment, every=request.all_drawn_values)
    chosen_trials = [
        Trial(version, values=values)
        for values in sets
        for version in chosen(homework_versions(assignment, values), request.only)
    ]
    data = hidden_data(course, assignment, request.data, lambda: SALT)
    measured = []
    with host_of_workers(course, assignment) as workers:
        for trial in chosen_trials:
            for measure in assignment.measures:
                result = _measured(assignment, trial, measure, data, workers, request.seeds)
                measured.append(replace(result, is_one_of_many=len(sets) > 1))
                done(measured[-1])
    return measured


def _measured(
    assignment: Assignment, trial: Trial, measure: Measure, data: HiddenData, workers: Host, seeds: int
) -> MeasuredVersion:
    training = version_training(assignment, trial, measure, data.of(1), workers, assignment.limits, seeds)
    item = assignment.item_measured(measure.id)
    return MeasuredVersion(trial.version, measure, training, item, trial.values)


def why_unmeasured(version: HomeworkVersion, training: Training) -> str:
    """Why a training has no measurement, with the line of the version's code that it ended at."""
    place = place_of(training.where)
    line = line_at({place.file: version.source}, place) if place is not None else None
    return f"{training.reason} It was at `{line}`." if line else training.reason


def version_training(
    assignment: Assignment,
    trial: Trial,
    measure: Measure,
    data: Splits | Examples,
    workers: Host,
    limits: Limits,
    seeds: int = 1,
) -> Training:
    """How a version's training for a measure ended: the first, with the measurements of all.

    Args:
        seeds: How many times it is trained.
    """
    process = ProcessLimits.within(limits, cpu_seconds=max(int(1.5 * limits.training_seconds), 60))
    program = program_of(assignment, trial).read_for(measure.id)

    digest = sha256(trial.version.source.encode()).hexdigest()

    def job(number: int) -> AnyJob:
        return job_of(
            assignment,
            measure,
            data,
            program=program,
            limits=limits,
            forbidden=assignment.forbidden_patterns,
            seed=training_seed(SALT, digest, number),
            order_seed=submission_seed(SALT, "order", digest, number),
            is_own=True,
        )

    return repeated_training(
        lambda: workers.spawn(process), job, None, runs=seeds, scale=measure.scale
    ).training
