"""An assignment, as read from `assignment.toml` and its check files; it never changes afterwards."""

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property, lru_cache
from itertools import chain
from pathlib import Path

from grader.domain.assignment_files import (
    PROVIDED,
    STUDENT_ID,
    AskedFile,
    ProvidedFile,
    SubmittedFile,
)
from grader.domain.assignment_rules import (
    CourseLateDays,
    ForbiddenRule,
    LatePolicy,
    RegradeRules,
    Resubmission,
    Tries,
)
from grader.domain.assignment_versions import ONE_EDITION, DrawnValue, Edition
from grader.domain.errors import UsageError
from grader.domain.limits import Limits
from grader.domain.measure import NO_ROLES, SHARE, Measure, ProgramRoles, Scale, StudyTable
from grader.domain.oral_check import OralQuestion
from grader.domain.score import rounded
from grader.domain.submission import Role

# the component of what belongs to no part: checks of the whole, findings about the files
SUBMISSION = "submission"
# the marks of checks, as registered with pytest
CHECK_MARKERS = (
    "component(name): the stub that a check judges",
    "weight(share): its share of the points",
    "because(*checks, run=True): the checks of the same stub in which its failure has its cause",
    "explains(*checks): the checks of the same stub whose failure has its cause in this one's",
    "shows(*checks): the checks of the same stub that hold wherever this one holds; they are not run then",
)
TEST_ACCURACY = "test_accuracy"  # the only measure of an assignment that names none
# other keys of a measured model in the results, which no measure may have as its id
MEASUREMENTS = frozenset(
    {
        *("parameters", "test_accuracy_interval", "test_loss", "test_images", "accuracy_counted", "epochs"),
        *("planned_epochs", "test_accuracy_runs", "classes", "claimed_accuracy", "claimed_in"),
        *("projected_seconds", "seen_accuracy"),
    }
)


@dataclass(frozen=True)
class Component:
    """One stub that the student fills in, or one file that is handed in and judged by itself.

    Attributes:
        name: `Attention`, `train_epoch`, ...; for a file, its role.
        kind: `class`, `function` or `file`.
        signature: The parameters as the template prints them, without `self`:
            `dim, heads=4, dim_head=64, dropout=0.`
    """

    name: str
    kind: str
    signature: str

    @property
    def is_file(self) -> bool:
        """Whether it is a file that is handed in, and not code."""
        return self.kind == "file"


@dataclass(frozen=True)
class CheckSpec:
    """One check, as its file declares it (found by parsing, so that a missing finding is noticed).

    Attributes:
        id: The function's name without `test_`.
        component: The stub that it judges, or `submission`.
        title: The first line of its docstring: what the student reads.
        weight: Its share within the component's points.
        public: It is in `test_public.py` or `test_public_*.py`, which students have.
        file: The check file's name.
        because: Checks of the same component, in the order in which they are blamed: if one of them does not
            pass, it is the cause of a failure of this check.
        tried_anyway: Whether it is run even then, to see if its property holds; otherwise it is skipped.
        shown_by: Checks of the same component: where all of them pass, this one's property holds as well, and
            it is not run. They are among `because`.
    """

    id: str
    component: str
    title: str
    weight: float = 1.0
    public: bool = False
    file: str = ""
    because: tuple[str, ...] = ()
    tried_anyway: bool = True
    shown_by: tuple[str, ...] = ()


@dataclass(frozen=True)
class RubricPart:
    """A part of an item that a person marks separately: `patches` of `q10`, 2.5 points."""

    id: str
    title: str
    points: float


@dataclass(frozen=True)
class Remark:
    """A comment of the comment bank, for whoever marks.

    Attributes:
        text: What the student reads.
        item: The rubric item that it is about; empty: any.
        part: What it is about if it has points: the item, or a part of it (`q10.patches`).
        points: What it adds to the points of that part (negative: takes off); None: it is a comment only.
        note: What only markers read.
        group: A heading under which markers find it; empty: none.
    """

    id: str
    text: str
    item: str = ""
    part: str = ""
    points: float | None = None
    note: str = ""
    group: str = ""


@dataclass(frozen=True)
class RubricItem:
    """One line of the rubric.

    An item has exactly one source: `components` (checks), `measured` (a measurement with breakpoints),
    `study` (rows of the student's table, trained again), or none of them (a person gives the points).

    Attributes:
        components: Component name -> points; they add up to `points`.
        measured: The id of a measure, e.g. `test_accuracy`.
        breakpoints: (value of the measurement, points), ascending, linear in between.
        study: Gives full points if the study's retrained rows differ from its base as claimed; otherwise a
            person gives the points.
        threshold: The value that the assignment asks for (0.60); drawn in the report.
        scale: How the values of the measure are read.
        beside: The measurements that a person who marks it wants to see: `values` (that the student chose),
            `accuracy` (measured and claimed), `curves`, `predictions`, `attention`, `model`.
        parts: The parts that a person marks one by one, if there are any; they add up to `points`.
    """

    id: str
    title: str
    points: float
    components: dict[str, float] | None = None
    measured: str | None = None
    breakpoints: tuple[tuple[float, float], ...] = ()
    threshold: float | None = None
    scale: Scale = SHARE
    beside: tuple[str, ...] = ()
    parts: tuple[RubricPart, ...] = ()
    study: bool = False

    @property
    def by_person(self) -> bool:
        """Whether a person gives the points."""
        return self.components is None and self.measured is None and not self.study

    @property
    def targets(self) -> dict[str, float]:
        """What marks name it by, with the maximum: its id, or only its parts, as in `q10.patches`."""
        return {part_target(self, part): part.points for part in self.parts} or {self.id: self.points}


def maximum_of(rubric: Iterable[RubricItem]) -> float:
    """The points of all items of a rubric, without what floating point numbers add to hundredths."""
    return round(sum(item.points for item in rubric), 2)


def part_target(item: RubricItem, part: RubricPart) -> str:
    """The target under which the marks of a part are recorded: `q10.patches`."""
    return f"{item.id}.{part.id}"


@dataclass(frozen=True)
class DataUse:
    """Which data sets the assignment uses, by the file names under `datasets/`.

    Attributes:
        real: The data set of the course (`neu_cls`).
        synthetic: The embedded default (`synthetic_steel`).
        classes: The class names in the order of the labels; () if the targets are not classes.
        student_seed: The seed of the split that students make.
        train_share: The share of each class that is for training, 0 to 1.
        train_per_class: The most training images of a class; None: all in the split.
        test_per_class: The most test images of a class; None: all in the split.
        without: Shell patterns of the names of images that no homework gets, as they were used for something
            else.
        in_parts: Whether students receive the images in `train/<class>/` and `test/<class>/`, already split;
            otherwise in `<class>/`, and splitting is a part of the homework.
        size: Height and width of the images, in pixels, before any of the student's transforms.
        channels: 1 for gray images, 3 for colored ones.
        are_images: Whether they are images with labels; otherwise inputs and targets are arrays of any kind.
    """

    real: str
    synthetic: str
    classes: tuple[str, ...] = ()
    student_seed: int = 42
    train_share: float = 0.7
    train_per_class: int | None = None
    test_per_class: int | None = None
    without: tuple[str, ...] = ()
    in_parts: bool = False
    size: tuple[int, int] = (224, 224)
    channels: int = 3
    are_images: bool = True

    @property
    def image_shape(self) -> tuple[int, ...]:
        """The shape of a stored image: (height, width), or (height, width, 3) in color."""
        return self.size if self.channels == 1 else (*self.size, self.channels)

    @property
    def is_made(self) -> bool:
        """Whether the real data are made by the data set's file, so that no `--data` is needed."""
        return not self.are_images and self.real == self.synthetic


def trainers(components: Sequence[Component], stated: ProgramRoles) -> list[str]:
    """The graded functions that may train: the stated one, else those with a parameter `optimizer`."""
    if stated.trainer:
        return [stated.trainer]
    return [
        component.name
        for component in components
        if component.kind == "function"
        and "optimizer" in [part.split("=")[0].strip() for part in component.signature.split(",")]
    ]


@dataclass(frozen=True)
class ProgramRules:
    """The rules by which a program is read.

    Attributes:
        components: What is graded.
        forbidden: What is not allowed.
        checkpoint: A part of the name of the file with the weights: `_Lab8_Homework`, `_vit`.
        further: The measure's id -> the rules for a further model.
        trains: Whether the grader trains the submission on its own data.
        provided: The names of files that are available wherever it is executed.
        cached: What libraries find without a download: the names of files, and of repositories of the Hugging
            Face hub (`OWNER/NAME`).
        modules: Modules that the course hands out: name -> content. They count, not a student's copies.
        file_stem: A part of the names of all files that are handed in: `_CIFAR10`.
    """

    components: tuple[Component, ...] = ()
    forbidden: tuple[ForbiddenRule, ...] = ()
    checkpoint: str = ""
    roles: ProgramRoles = NO_ROLES
    further: dict[str, "ProgramRules"] = field(default_factory=dict)
    trains: bool = True
    provided: tuple[str, ...] = ()
    cached: tuple[str, ...] = ()
    modules: dict[str, bytes] = field(default_factory=dict)
    file_stem: str = ""


@dataclass(frozen=True)
class HiddenCheck:
    """What a student's copy says about a check that it lacks.

    Attributes:
        component: The part that it judges.
        title: The check's title, as in a report.
        weight: Its share within the component's points.
        seen: Whether public checks look at the same.
    """

    component: str
    title: str
    weight: float
    seen: bool = False


@dataclass(frozen=True)
class Assignment:
    """An assignment as the engine uses it.

    Attributes:
        folder: Where its files are: `reference/<id>`, or the student's own folder (`public_only`).
        file_stem: How files are named, e.g. `{student_id}_Lab8_Homework`.
        data: The data for training and measuring; None: the assignment has no data, and nothing is trained.
        policies: Decisions that the checks leave to the course: name -> `allow`, `flag` (costs nothing, but
            a person looks at it) or `forbid`.
        boundaries: Points at which a grade begins, ascending; () if the course names none.
        leaderboard: Whether a page of accuracies without names is written beside the class page.
        public_only: Whether it is a student's copy, with public checks only and without rubric secrets.
        remarks: The comment bank, for whoever marks.
        from_zero: The items or parts whose points begin at 0 when comments with points are chosen; all others
            begin at their maximum.
        oral_questions: What is asked about its parts in oral checks.
        measures: The models that are trained and measured; the checks configure the first one.
        study: A table of trainings that is handed in, some of which are repeated; None: there is none.
        trained_checks: The checks of a trained model; a failure goes to a person and takes no points.
        provided: Files that students get with it.
        variant: The named values that are drawn for the term or for each student.
        edition: Which of its editions this is, if it has several.
        digest: SHA-256 over assignment.toml, checks, mistakes and solution, hexadecimal.
        hidden_checks: In a student's copy: what it says about the checks that it lacks.
        example_id: In a student's copy: the id in the homework as handed out, which is nobody's.
        language: The code of the language of reports, set by the course.
        course_late_days: The late days of the course; None: it has none, or they are not used here.
        resubmission: What a submission after the deadline can regain; None: nothing, it is late.
        tries: How often hidden checks give feedback before the deadline; None: whenever pages are made.
        regrade_rules: When and how often students may dispute points; None: no requests are taken.
        review_required: Whether a grade is released only after a person has reviewed it.
    """

    id: str
    title: str
    folder: Path
    file_stem: str
    files: tuple[SubmittedFile, ...]
    components: tuple[Component, ...]
    checks: tuple[CheckSpec, ...]
    rubric: tuple[RubricItem, ...]
    forbidden: tuple[ForbiddenRule, ...]
    limits: Limits
    data: DataUse | None
    deadline: datetime | None = None
    late: LatePolicy = field(default_factory=LatePolicy)
    policies: dict[str, str] = field(default_factory=dict)
    boundaries: tuple[float, ...] = ()
    leaderboard: bool = False
    public_only: bool = False
    remarks: tuple[Remark, ...] = ()
    from_zero: tuple[str, ...] = ()
    oral_questions: tuple[OralQuestion, ...] = ()
    trained_checks: tuple[CheckSpec, ...] = ()
    measures: tuple[Measure, ...] = (Measure(TEST_ACCURACY),)
    study: StudyTable | None = None
    provided: tuple[ProvidedFile, ...] = ()
    variant: tuple[DrawnValue, ...] = ()
    edition: Edition = ONE_EDITION
    digest: str = ""
    hidden_checks: tuple[HiddenCheck, ...] = ()
    example_id: str = ""
    language: str = "en"
    course_late_days: CourseLateDays | None = None
    resubmission: Resubmission | None = None
    tries: Tries | None = None
    regrade_rules: RegradeRules | None = None
    review_required: bool = False

    @property
    def compares_attempts(self) -> bool:
        """Whether a score depends on the student's other attempts."""
        return self.resubmission is not None or self.tries is not None

    @property
    def replays_training(self) -> bool:
        """Whether a model is trained by the student's own program, and not by a call."""
        return self.data is not None and any(measure.call is None for measure in self.measures)

    @property
    def uses_chosen_values(self) -> bool:
        """Whether the measured training has the values that a student's program states, and not a call's."""
        return all(measure.call is None for measure in self.measures[:1])

    @property
    def program_rules(self) -> ProgramRules:
        """The rules by which a submitted program is read."""
        first, *others = self.measures
        further = {measure.id: self._rules(measure) for measure in others}
        return replace(self._rules(first), further=further)

    def _rules(self, measure: Measure) -> ProgramRules:
        file_stem = self.file_stem.replace(STUDENT_ID, "")
        trains = self.data is not None and measure.call is None
        return ProgramRules(
            tuple(component for component in self.components if not component.is_file),
            self.forbidden,
            measure.weights or file_stem,
            measure.roles,
            trains=trains,
            provided=tuple(file.name for file in self.provided),
            cached=tuple(name for file in self.provided for name in file.cached_names),
            modules={file.name: file.code for file in self.provided if file.code},
            file_stem=file_stem,
        )

    @cached_property
    def asked_files(self) -> tuple[AskedFile, ...]:
        """The files that must be handed in, with weights for each measured model."""
        asked = []
        for file in self.files:
            other_suffixes = {
                suffix for other in self.files if other is not file for suffix in other.suffixes
            }
            name_part = file.stem.replace(STUDENT_ID, "") if other_suffixes & set(file.suffixes) else ""
            stem = file.stem or self.file_stem
            if file.role == Role.CHECKPOINT:
                first = self.measures[0].id
                asked += [
                    AskedFile(
                        file.role,
                        file.suffixes,
                        stem + measure.weights,
                        measure.id,
                        measure.weights or name_part,
                        file.required and measure.id == first,
                    )
                    for measure in self.measures
                ]
            else:
                asked.append(
                    AskedFile(file.role, file.suffixes, stem, name_part=name_part, required=file.required)
                )
        return tuple(asked)

    @property
    def own_roles(self) -> tuple[str, ...]:
        """The roles of files that the assignment itself names, for its checks to read."""
        return tuple(file.role for file in self.files if file.role not in tuple(Role))

    def asked_file(self, name: str) -> AskedFile | None:
        """The asked file that a file is, by its name; None if nothing of its kind was asked for."""
        suffix = Path(name).suffix.lower()
        kind = [file for file in self.asked_files if suffix in file.suffixes]
        named = [file for file in kind if file.has_name_part(name)]
        return max(named, key=lambda file: len(file.name_part), default=kind[0] if kind else None)

    @property
    def model(self) -> str:
        """The graded class of the first model: the one that its measure names, else the last; empty: none."""
        classes = [component.name for component in self.components if component.kind == "class"]
        return self.measures[0].roles.model or (classes[-1] if classes else "")

    @property
    def trains(self) -> tuple[str, ...]:
        """The graded names that training needs: the classes, and the functions that train."""
        classes = [component.name for component in self.components if component.kind == "class"]
        functions = [
            [measure.call.function] if measure.call else trainers(self.components, measure.roles)[:1]
            for measure in self.measures
        ]
        return tuple(dict.fromkeys((*classes, *chain.from_iterable(functions))))

    @property
    def provided_folder(self) -> Path:
        """The folder of the files that students get."""
        return self.folder if self.public_only else self.folder / PROVIDED

    @property
    def class_names(self) -> tuple[str, ...]:
        """The names of the data's classes, in the order of the labels; () if there is no data."""
        return self.data.classes if self.data is not None else ()

    @property
    def needs_data(self) -> bool:
        """Whether a measurement decides points, so that there is no grade without training."""
        return any(item.measured is not None for item in self.rubric)

    def required_data(self) -> DataUse:
        """The data, for callers that cannot do without.

        Raises:
            UsageError: The assignment has none.
        """
        if self.data is None:
            raise UsageError(
                f"{self.id} has no data set ([data] in assignment.toml), so there is nothing to train on."
            )
        return self.data

    @property
    def measured_item(self) -> RubricItem | None:
        """The rubric item that the accuracy of the first model decides, if there is one."""
        return self.item_measured(self.measures[0].id)

    def item_measured(self, measure: str) -> RubricItem | None:
        """The rubric item that a measure decides, if there is one."""
        return next((item for item in self.rubric if item.measured == measure), None)

    @property
    def maximum(self) -> float:
        """The points of all rubric items."""
        return maximum_of(self.rubric)

    @property
    def forbidden_patterns(self) -> tuple[str, ...]:
        """The dotted patterns of parts that are not allowed, or that a person looks at."""
        return tuple(rule.pattern for rule in self.forbidden)

    def parameters_of(self, component: str) -> tuple[str, ...]:
        """The names of a stub's required parameters, in the template's order.

        Raises:
            KeyError: There is no such stub.
        """
        arguments = self._arguments_of(component)
        by_place = (*arguments.posonlyargs, *arguments.args)
        required = len(by_place) - len(arguments.defaults)
        keyword_only = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        return (
            *(argument.arg for argument in by_place[:required]),
            *(argument.arg for argument, default in keyword_only if default is None),
        )

    def all_parameters_of(self, component: str) -> tuple[str, ...]:
        """The names of all of a stub's parameters, in the template's order.

        Raises:
            KeyError: There is no such stub.
        """
        arguments = self._arguments_of(component)
        all_arguments = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
        return tuple(argument.arg for argument in all_arguments)

    def _arguments_of(self, component: str) -> ast.arguments:
        return _arguments({part.name: part.signature for part in self.components}[component])

    def mark_targets(self) -> dict[str, float]:
        """The targets to which a person can give points, with their maximum: see `RubricItem.targets`."""
        return {target: maximum for item in self.rubric for target, maximum in item.targets.items()}

    def target_titles(self) -> dict[str, str]:
        """The titles of items, and of parts with their item's: `Q10: ViT: from the image to the output`."""
        titles = {item.id: item.title for item in self.rubric}
        return titles | {
            f"{item.id}.{part.id}": f"{item.title}: {part.title}"
            for item in self.rubric
            for part in item.parts
        }

    def points_by_remarks(self, target: str, values: Iterable[float]) -> float:
        """The points of an item, or a part of one, to which comments add theirs, from 0 to its maximum.

        Raises:
            KeyError: A person cannot give points to this target.
        """
        maximum = self.mark_targets()[target]
        start = 0.0 if target in self.from_zero else maximum
        return rounded(min(max(start + sum(values), 0.0), maximum))

    def item_of(self, component: str) -> RubricItem | None:
        """The rubric item that the component's points belong to, if any."""
        for item in self.rubric:
            if item.components and component in item.components:
                return item
        return None


@lru_cache(1000)  # asked for each time that a part is constructed
def _arguments(signature: str) -> ast.arguments:
    """The parameters of a stub with this signature."""
    stub = ast.parse(f"def stub({signature}): ...").body[0]
    assert isinstance(stub, ast.FunctionDef)
    return stub.args
