"""The keys that `assignment.toml` may have, with their types."""

from dataclasses import fields
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field, create_model
from pydantic_core import PydanticCustomError

from grader.course.toml_file import TOO_FINE, Table
from grader.domain.assignment import DataUse
from grader.domain.assignment_rules import LatePolicy
from grader.domain.limits import Limits
from grader.domain.measure import StudyTable, TrainingCall
from grader.domain.score import rounded

Text = Annotated[str, Field(min_length=1)]
Texts = Annotated[list[Text], Field(min_length=1)]
Positive = Annotated[float, Field(gt=0)]
Days = Annotated[float, Field(gt=0, le=3660)]  # from a date: ten years, so that there is one
PositiveInt = Annotated[int, Field(gt=0)]
NotNegative = Annotated[float, Field(ge=0)]


def _in_hundredths(points: float) -> float:
    # lines of a score have two decimals: three thirds of finer points would not add up to the whole
    if abs(points - rounded(points)) > 1e-9:
        raise PydanticCustomError(TOO_FINE, "finer than the points of a score")
    return points


Points = Annotated[Positive, AfterValidator(_in_hundredths)]
PointsOrZero = Annotated[NotNegative, AfterValidator(_in_hundredths)]


class SubmittedFileTable(Table):
    """`{ suffixes = [".csv"], stem = "{student_id}_metrics" }`: a file that is handed in."""

    suffixes: Texts
    stem: Text | None = None


class RequiredTable(Table):
    """`[files.required]`: each file that must be handed in, by its role.

    A value is a list of suffixes or a `SubmittedFileTable`: `course.submitted_files` reads it. Further keys
    are roles of the assignment's own.
    """

    model_config = ConfigDict(extra="allow")

    code: Any
    checkpoint: Any = None
    report: Any = None


class OptionalTable(Table):
    """`[files.optional]`: without such a file, only what depends on it is lost. See `RequiredTable`."""

    model_config = ConfigDict(extra="allow")

    checkpoint: Any = None
    report: Any = None


class FilesTable(Table):
    """`[files]`: how the files are named and which are required."""

    stem: Text
    required: RequiredTable
    optional: OptionalTable = Field(default_factory=OptionalTable)


class ProvidedTable(Table):
    """`[provided]`: files that students and workers get, from `provided/`."""

    files: Texts
    sha256: dict[Text, Text] = Field(default_factory=dict)
    cache: dict[Text, Text] = Field(default_factory=dict)


class DataTable(Table):
    """`[data]`: the data sets."""

    kind: Literal["images", "arrays"] = "images"
    real: Text
    synthetic: Text
    classes: list[Text] = Field(default_factory=list)
    student_seed: int = DataUse.student_seed
    train_share: Annotated[float, Field(gt=0, lt=1)] = DataUse.train_share
    train_per_class: PositiveInt | None = None
    test_per_class: PositiveInt | None = None
    without: list[Text] = Field(default_factory=list)
    layout: Literal["classes", "parts"] = "classes"
    size: list[PositiveInt] = Field(min_length=2, max_length=2, default_factory=lambda: list(DataUse.size))
    channels: Literal[1, 3] = 3


_LIMITS: dict[str, Any] = {
    limit.name: (PositiveInt if limit.type is int else Positive, limit.default) for limit in fields(Limits)
}
if TYPE_CHECKING:

    class LimitsTable(Table):
        """`[limits]`: what one submission may use; keys and defaults are those of `Limits`."""

else:
    LimitsTable = create_model("LimitsTable", __base__=Table, **_LIMITS)


class LateTable(Table):
    """`[late]`: the consequences of handing in after the deadline."""

    grace_minutes: NotNegative = LatePolicy.grace_minutes
    points_per_day: Points | None = None
    most_points: Points | None = None
    tokens: bool = LatePolicy.tokens


class TriesTable(Table):
    """`[tries]`: how many submissions before the deadline get feedback on hidden checks."""

    feedback: Annotated[int, Field(ge=0)]


class ResubmissionTable(Table):
    """`[resubmission]`: what one submission after the deadline regains, and until when."""

    regains: Annotated[float, Field(gt=0, le=1)]
    until: datetime | None = None
    days: Days | None = None


class RegradeRequestsTable(Table):
    """`[regrade_requests]`: how long and how often students may dispute points, and who answers."""

    days: Days
    most: Annotated[int, Field(ge=1)] = 3
    answered_by: Literal["marker", "another"] = "marker"


class ReviewTable(Table):
    """`[review]`: whether somebody must have looked over a grade before it is released."""

    required: bool


class ComponentTable(Table):
    """`[[component]]`: one stub, or one file that is handed in and judged by itself."""

    name: Text
    kind: Literal["class", "function", "file"]
    signature: str = ""


class ProgramTable(Table):
    """`[program]`: which names of a homework have which role, where the defaults do not fit."""

    model: Text | None = None
    trainer: Text | None = None
    evaluator: Text | None = None
    final: Text | None = None


class TrainingCallTable(Table):
    """`[measure.call]`: how a model is made, trained and queried by calling what students wrote."""

    model: Text
    arguments: dict[Text, Any] = Field(default_factory=dict)
    function: Text
    given: dict[Text, Any]
    weights: Text | None = None
    answers: Text | None = None
    answers_with: dict[Text, Any] = Field(default_factory=dict)
    batch_size: PositiveInt = TrainingCall.batch_size
    data: Literal["tensors", "arrays"] = "tensors"
    standardized: bool = False
    accepts: list[Text] = Field(default_factory=list)


class StudyFileTable(TrainingCallTable):
    """`[study]`: a table of trainings that is handed in; some of its rows are trained again."""

    file: Text
    claimed: Text
    seed: Text
    size: Text | None = None
    rows: PositiveInt = StudyTable.rows


class MeasureTable(Table):
    """`[[measure]]`: a model that is trained and measured; needed if there are several or to set its id."""

    id: Text
    title: Text | None = None
    model: Text | None = None
    trainer: Text | None = None
    evaluator: Text | None = None
    final: Text | None = None
    weights: Text | None = None
    function: Text | None = None
    better: Literal["higher", "lower"] = "higher"
    unit: Literal["percent", "number"] | None = None
    reference: float | None = None
    most_epochs: PositiveInt | None = None
    most_multiply_adds: PositiveInt | None = None
    note: Text | None = None
    call: TrainingCallTable | None = None


class BreakpointTable(Table):
    """`{ at = 0.60, points = 9 }`; `at` is a number, "chance" or "95 % of reference"."""

    at: object
    points: PointsOrZero


class PartTable(Table):
    """`{ id = "patches", title = "...", points = 2.5 }`: a part that a person marks separately."""

    id: Text
    title: Text
    points: Points


class RubricTable(Table):
    """`[[rubric]]`: one line of the rubric, with exactly one source of points."""

    id: Text
    title: Text
    points: Points
    components: Annotated[dict[str, PointsOrZero], Field(min_length=1)] | None = None
    measured: Text | None = None
    threshold: float | None = None
    breakpoints: Annotated[list[BreakpointTable], Field(min_length=1)] | None = None
    by: Literal["person", "study"] | None = None
    beside: list[Literal["values", "accuracy", "curves", "predictions", "model", "own_results"]] = Field(
        default_factory=list
    )
    parts: Annotated[list[PartTable], Field(min_length=1)] | None = None


class ForbiddenTable(Table):
    """`[[forbidden]]`: parts that must not be used, the items that a use costs, and the reason."""

    parts: Texts
    policy: Literal["forbid", "flag"] = "forbid"
    costs: Text
    reason: Text


class HiddenCheckTable(Table):
    """`[[hidden_check]]`: a check that students do not have, in their copy of the file."""

    component: Text
    title: Text
    weight: Annotated[float, Field(gt=0)]
    seen: bool = False


class HandedOutTable(Table):
    """`[handed_out]`: the values in the files that students get, in their copy of the file."""

    student_id: Text


class VariantTable(Table):
    """`[variant.heads]`: a named value that is drawn for the term, or for each student."""

    choices: Annotated[list[Any], Field(min_length=1)]
    per: Literal["term", "student"] = "term"


class AssignmentTable(Table):
    """The whole file."""

    id: Text
    title: Text
    deadline: datetime | None = None
    edition: list[Text] = Field(default_factory=list)
    editions: list[list[Text]] = Field(default_factory=list)
    boundaries: list[Positive] = Field(default_factory=list)
    leaderboard: bool = False
    files: FilesTable
    data: DataTable | None = None
    provided: ProvidedTable | None = None
    limits: LimitsTable = LimitsTable()
    late: LateTable | None = None
    resubmission: ResubmissionTable | None = None
    tries: TriesTable | None = None
    regrade_requests: RegradeRequestsTable | None = None
    review: ReviewTable = ReviewTable(required=False)
    program: ProgramTable = ProgramTable()
    measure: list[MeasureTable] = Field(default_factory=list)
    study: StudyFileTable | None = None
    component: Annotated[list[ComponentTable], Field(min_length=1)]
    rubric: Annotated[list[RubricTable], Field(min_length=1)]
    policies: dict[Text, Literal["allow", "advise", "flag", "forbid"]] = Field(default_factory=dict)
    forbidden: list[ForbiddenTable] = Field(default_factory=list)
    hidden_check: list[HiddenCheckTable] = Field(default_factory=list)
    handed_out: HandedOutTable | None = None
    variant: dict[str, VariantTable] = Field(default_factory=dict)
