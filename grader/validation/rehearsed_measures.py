"""Tries, without waiting for a whole training, whether an assignment's data and measures can be used at all.

The reference is trained as `[measure.call]` says, on a few examples, and measured by the assignment's own
function. What fails is tried again with all the examples before it is told, since few may be too few. A
training that takes longer than the rehearsal may is left to `grader validate --train`.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from grader.course.dataset_file import SYNTHETIC, dataset_file
from grader.course.locate import Course
from grader.course.measures import measure_function
from grader.domain.assignment import Assignment
from grader.domain.errors import CourseError
from grader.domain.evidence import Training, TrainingOutcome
from grader.domain.measure import Measure
from grader.grading.hidden_splits import HiddenExamples, HiddenSplits, hidden_data
from grader.kit import Examples, Splits
from grader.kit.splits import first_of_each, taken, united
from grader.sandbox.host_client import Host
from grader.validation.measured_versions import SALT, version_training, why_unmeasured
from grader.validation.trials import Trial, host_of_workers

FEW = 64  # examples
FEW_PER_CLASS = 8  # images
SECONDS = 30.0  # of a rehearsal


def measure_faults(course: Course, assignment: Assignment, reference: Trial) -> tuple[str, ...]:
    """Why the reference cannot be measured, in sentences; () if it can, or if no points depend on it.

    Args:
        reference: The reference with its drawn values.

    Raises:
        EngineError: The solution cannot be loaded.
    """
    measured = [measure for measure in assignment.measures if assignment.item_measured(measure.id)]
    if assignment.data is None or not measured:
        return ()
    try:
        faults = [*_data_faults(course, assignment), *_loaded_faults(course, assignment, reference, measured)]
    except CourseError as error:
        faults = [str(error)]
    return tuple(dict.fromkeys(faults))


def _data_faults(course: Course, assignment: Assignment) -> Iterator[str]:
    """What the data set files declare otherwise than `[data]`."""
    use = assignment.required_data()
    for name in dict.fromkeys((use.real, use.synthetic)):
        classes = dataset_file(course.datasets, name, labeled=use.are_images).classes
        if len(classes) != len(use.classes) and use.are_images:
            yield (
                f"datasets/{name}.py has {len(classes)} classes, and [data] of assignment.toml names "
                f"{len(use.classes)}. Make them the same."
            )
        elif name == use.real and classes and classes != use.classes:
            yield (
                f"datasets/{name}.py has the classes {', '.join(classes)}, and [data] of assignment.toml "
                f"names {', '.join(use.classes)}. Make them the same, in one order."
            )


def _loaded_faults(
    course: Course, assignment: Assignment, reference: Trial, measured: list[Measure]
) -> Iterator[str]:
    data = hidden_data(course, assignment, SYNTHETIC, lambda: SALT)
    if isinstance(data, HiddenSplits):
        yield from _shape_faults(assignment, data)
    elif assignment.required_data().is_made:
        yield from _made_faults(data)
    called = []
    for measure in measured:
        if measure.function:
            measure_function(assignment, measure)
        if measure.call is not None:
            called.append(measure)
    if not called:
        return
    with host_of_workers(course, assignment) as workers:
        for measure in called:
            training = _rehearsed(assignment, measure, reference, data.of(1), workers)
            if training.outcome not in (TrainingOutcome.COMPLETED, TrainingOutcome.BUDGET):
                why = why_unmeasured(reference.version, training)
                yield f"[[measure]] '{measure.id}': the reference is not measured: {why}"


def _shape_faults(assignment: Assignment, data: HiddenSplits) -> Iterator[str]:
    """Whether images are as `[data]` says, by which students' own machines try a homework."""
    stated, shape = assignment.required_data().image_shape, data.of(1).train_images.shape[1:]
    if shape != stated:
        (height, width), channels = shape[:2], shape[2] if len(shape) > 2 else 1
        plural = "s" if channels > 1 else ""
        yield (
            f"datasets/{data.name}.py makes images of {height} x {width} pixels with {channels} "
            f"channel{plural}, and [data] of assignment.toml says otherwise. Write size = "
            f"[{height}, {width}] and channels = {channels} there."
        )


def _made_faults(data: HiddenExamples) -> Iterator[str]:
    """Whether data that are made follow their seed: if not, students can make the hidden answers."""
    first, again, other = (data.of(1), data.again(1), data.of(2))
    if not _same(first, again):
        yield (
            f"datasets/{data.name}.py: load gives other examples each time for one seed. Draw everything "
            "from a generator of this seed."
        )
    elif _same(first, other):
        yield (
            f"datasets/{data.name}.py: load gives the same hidden examples for every seed, so that students "
            "have them and their answers. Draw them by the seed."
        )


def _same(one: Examples, other: Examples) -> bool:
    """Whether two loads ask about the same inputs, in the same order."""
    inputs, others = one.test_inputs, other.test_inputs
    return inputs.shape == others.shape and np.array_equal(inputs, others, equal_nan=inputs.dtype.kind == "f")


def _rehearsed(
    assignment: Assignment, measure: Measure, reference: Trial, data: Splits | Examples, workers: Host
) -> Training:
    """How a short training of the reference ended; if it failed, how the whole one did."""
    seconds = min(SECONDS, assignment.limits.training_seconds)
    short = replace(assignment.limits, training_seconds=seconds)
    for examples, limits in ((_few(data), short), (data, assignment.limits)):
        training = version_training(assignment, reference, measure, examples, workers, limits)
        if training.outcome in (TrainingOutcome.COMPLETED, TrainingOutcome.BUDGET):
            break
    return training


def _few(data: Splits | Examples) -> Splits | Examples:
    """The first examples of each side."""
    if isinstance(data, Examples):
        targets = data.train_targets
        return replace(
            data,
            train_inputs=data.train_inputs[:FEW],
            train_targets=targets[:FEW] if targets is not None else None,
            test_inputs=data.test_inputs[:FEW],
            test_targets=data.test_targets[:FEW],
        )
    images, count = united(data), len(data.train_names)
    rows = np.arange(len(images.names), dtype=np.intp)
    train, test = (first_of_each(side, images.labels, FEW_PER_CLASS) for side in (rows[:count], rows[count:]))
    return taken(data.name, data.classes, images, train, test)
