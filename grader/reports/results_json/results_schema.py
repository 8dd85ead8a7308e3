"""The keys of `results.json`: the contract with what reads grades by program. They stay as they are."""

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from grader.domain.assignment_versions import Value

_Share = Field(default=None, ge=0, le=1)


class _Record(BaseModel):
    """A part of the document: no key that is not written down here."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class ComponentRecord(_Record):
    """A component's share of an item's points."""

    component: str
    points: float | None = Field(description="null: none of it could be decided")
    max: float
    passed: int
    total: int = Field(description="the number of checks")
    reason: str


class EditRecord(_Record):
    """A person's change to an item's points, or to the total."""

    who: str
    when: datetime
    why: str
    old: float | None
    new: float | None
    part: str = Field(default="", description="the part of the item that it is about; empty: all of it")
    sheet: str = Field(default="", description="the marking sheet that it came from; empty: another way")


class PartRecord(_Record):
    """A part of an item that a person marks in parts."""

    id: str
    title: str
    points: float | None = Field(description="null: nobody has marked it yet")
    max: float
    comments: list[str]


class AttemptsRecord(_Record):
    """The points of an item before the deadline and in the resubmission."""

    first: float
    resubmitted: float


class ItemRecord(_Record):
    """One rubric item."""

    id: str
    points: float | None = Field(description="null: a person decides, or it was not run; never zero for that")
    max: float
    title: str
    state: Literal["decided", "awaiting", "not_run"]
    reason: str
    floor: float | None = Field(description="points that are secured although the item is not decided")
    components: list[ComponentRecord]
    parts: list[PartRecord] = Field(default_factory=list)
    comments: list[str] = Field(default_factory=list, description="what a person tells the student about it")
    edits: list[EditRecord]
    attempts: AttemptsRecord | None = Field(
        default=None, description="of both attempts, where a resubmission counts; null: there is one"
    )


class FindingRecord(_Record):
    """What one check found."""

    check: str
    component: str = Field(
        description="the stub's name, or `submission` for files, names and forbidden parts"
    )
    status: Literal["passed", "failed", "skipped", "errored"]
    blame: Literal["student", "instructor", "engine"] | None
    diagnosis: str | None = Field(
        description="the id of the mistake that was recognized; when passed, the policy that flags the work"
    )
    message: str = Field(
        description="what is wrong; when passed, what a person should look at, which costs nothing, or empty"
    )
    where: str = Field(
        description="`homework.py:41` or `In [4], line 3 (cell 9)`; empty when there is no place"
    )
    title: str
    hint: str
    waived: str = Field(
        default="",
        description="who gave the check back to the whole class, and why: it counts as passed; else empty",
    )
    because: str | None = Field(
        default=None,
        description="a check of the same component: of one that is folded, the one with the cause; of one "
        "that passed without being run, one that shows that it holds; else null",
    )


class ClassRecord(_Record):
    """One class of the confusion matrix; null where there is nothing to divide by."""

    name: str
    images: int
    precision: float | None = _Share
    recall: float | None = _Share
    f1: float | None = _Share
    roc_area: float | None = _Share


class Measurements(_Record):
    """What was measured rather than checked; null where it is unknown.

    What is named here is of the first model that is trained. Each measure of the assignment is a key, too.
    """

    model_config = ConfigDict(extra="allow", frozen=True, allow_inf_nan=False)
    __pydantic_extra__: dict[str, float | None] = Field(init=False)

    test_accuracy: float | None = _Share
    parameters: int | None = Field(default=None, ge=0)
    test_accuracy_interval: tuple[float, float] | None = Field(
        description="95 % interval, 0 to 1: of the images (Wilson), and of the seeds where there are several"
    )
    test_loss: float | None = Field(description="mean cross-entropy per image after the last epoch, in nats")
    test_images: int | None
    accuracy_counted: str = Field(description="of which weights the accuracy is, as a clause")
    epochs: int = Field(description="finished epochs")
    planned_epochs: int | None
    test_accuracy_runs: list[float] = Field(
        description="of each training run, where it was repeated with other seeds; `test_accuracy` is "
        "their mean"
    )
    classes: list[ClassRecord] = Field(description="of the first training, by class")
    seen_accuracy: float | None = Field(
        default=None, ge=0, le=1, description="for some of the images that it was trained on"
    )
    claimed_accuracy: float | None = Field(default=None, ge=0, le=1, description="what the student reports")
    claimed_in: str = Field(description="where the student reports it")
    projected_seconds: float | None = Field(
        description="what the whole training would take, where our limit does not allow it"
    )


_Outcome = Literal["completed", "failed", "diverged", "budget", "not_run", "unknown"]


class UnfinishedRunRecord(_Record):
    """A repetition of the training that did not come to its end: its accuracy is unknown."""

    number: int = Field(description="which of the trainings it is, 2 for the first repetition")
    outcome: _Outcome
    reason: str
    where: str


class EpochRecord(_Record):
    """One epoch; null where it is not a number. What the student's code controls is not for students."""

    number: int
    test_loss: float | None = Field(description="mean cross-entropy per image in nats, on the hidden images")
    test_accuracy: float
    reported_loss: float | None = Field(description="what the function that trains for an epoch reported")
    learning_rate: float | None = Field(description="at the end of the epoch, as the student's code sets it")
    seconds: float | None


class TrainingRecord(_Record):
    """How the measured training ended."""

    outcome: _Outcome
    reason: str
    where: str
    rebuilt: bool = Field(description="from the values of the student's loop, which could not be executed")
    data: str
    device: str
    seconds: float
    attempt: int | None = Field(
        default=None,
        description="which of the student's attempts it is, 1 for the first: it decides the hidden images; "
        "null: nothing was to be trained, or by an older version",
    )
    unfinished: list[UnfinishedRunRecord] = Field(
        default_factory=list, description="the repetitions that were not completed"
    )
    epochs: list[EpochRecord] = Field(default_factory=list, description="of the first training")


class CheckpointRecord(_Record):
    """What became of the submitted weights."""

    status: str = Field(description="`fits`, `mismatch`, `whole_model`, `refused`, `missing` or `not_tried`")
    reason: str
    accuracy: float | None = _Share
    withheld: int = Field(
        default=0, description="how many images that is of, if only such that nobody was given to train on"
    )


class ForbiddenRecord(_Record):
    """A forbidden part seen in the source; it costs nothing unless a graded name reaches it."""

    rule: str
    name: str
    where: str
    reached_from: list[str]


class TunedRecord(_Record):
    """A value that the student chose, read from the source."""

    name: str
    value: str
    where: str


class StageRecord(_Record):
    """Epochs in one loop with the same optimizer and schedule, as a trial on made-up images showed them."""

    loop: str = Field(description="where the loop begins; empty: no loop of the source")
    called: str = Field(description="the top-level line that calls its function; empty: it is at top level")
    epochs: int
    optimizer: str
    schedule: str
    first_rate: float
    last_rate: float
    learned: int = Field(description="how many numbers the optimizer changes")


class LeftAloneRecord(_Record):
    """What is not executed, because it trains other models."""

    where: str
    line: str
    reason: str


class PlanRecord(_Record):
    """What is trained of the program, and why."""

    model: str = Field(description="the variable of the model that counts")
    why: str
    missing: str = Field(description="why nothing is trained")
    tried: bool = Field(description="a trial came to its end, so that the stages are all that there are")
    fault: str = Field(description="what kept the trial from it")
    stages: list[StageRecord]
    other_models: int = Field(description="trained because the one that counts depends on them")
    validates: bool = Field(description="a tenth of the training images is kept for what the code measures")
    left_alone: list[LeftAloneRecord]
    parameters: int | None = Field(default=None, ge=0, description="of the model, as the trial built it")
    multiply_adds: int | None = Field(default=None, ge=0, description="of the model for one image")


class StudyRowRecord(_Record):
    """A row of the student's study."""

    values: dict[str, str]
    claimed: float
    measured: float | None = Field(description="when it was trained again, in the mean")
    seeds: int = Field(default=1, ge=1, description="with how many it was trained again")
    is_base: bool = Field(description="what the others differ from")
    why_not: str = Field(description="why it could not be measured")


class StudyRecord(_Record):
    """What came of the rows of a student's study that were trained again."""

    rows: list[StudyRowRecord]
    tolerance: float = Field(description="how far apart two differences from the base may be by chance")
    agrees: bool | None = Field(description="whether all differ from the base as claimed")
    reason: str = Field(description="why nothing was trained again")


class ModelRecord(_Record):
    """A further model that is trained and measured: as of the first one."""

    measurements: Measurements
    training: TrainingRecord
    checkpoint: CheckpointRecord
    plan: PlanRecord | None


class AcceptedFileRecord(_Record):
    """A file that counts."""

    role: str = Field(description="`code`, `checkpoint`, `report`, or one that the assignment names")
    name: str
    size: int = Field(description="in bytes")
    sha256: str


class RefusedFileRecord(_Record):
    """A file that was set aside, and why."""

    name: str
    reason: str


class LatenessRecord(_Record):
    """How late a submission is, and what that costs."""

    state: Literal["in_time", "late", "unknown"]
    days: int | None = Field(description="days that had begun since the deadline; null: unknown")
    penalty: float | None = Field(description="points taken off; null: unknown, or a person decides")
    total_after: float | None = Field(
        description="the total less the penalty; null when withheld, or late by an unknown time"
    )
    asked: bool = Field(description="a person is asked about this submission")
    reason: str
    seconds: float | None = Field(
        default=None, description="after the deadline; 0 within the time of grace, negative before"
    )
    received_at: datetime | None = Field(default=None, description="by the LMS, or by what a person said")
    due: datetime | None = Field(default=None, description="the student's deadline")
    extended: bool = Field(default=False, description="it is the student's own")
    decided: str = Field(default="", description="who said when it came, and why; empty: nobody did")
    tokens_used: int = Field(default=0, description="late days of the course that were used here")
    tokens_left: int | None = Field(
        default=None, description="late days that are left for later assignments; null: the course has none"
    )


class ResubmittedRecord(_Record):
    """What a submission after the deadline came to, beside one from before it."""

    state: Literal["counted", "unusable", "too_late"]
    regains: float = Field(description="the share of the lost points that it can win back, 0 to 1")
    until: datetime = Field(description="when resubmissions ended for the student")
    received_at: datetime
    first: float | None = Field(description="the points from before the deadline, before any penalty")
    resubmitted: float | None = Field(
        description="the points of the resubmission by itself; null: it has none, or does not count"
    )
    asked: bool = Field(description="a person is asked about it: the grader failed")
    reason: str


class RequestRecord(_Record):
    """A regrade request of the student, and its answer."""

    target: str = Field(description="the rubric item, or the part of one")
    reason: str = Field(description="the student's words")
    asked: datetime
    before: float | None = Field(description="the disputed points; null: they were open")
    answer: str = Field(default="", description="what the student reads; empty: there is none yet")
    answered: datetime | None = None
    after: float | None = Field(default=None, description="the points that the answer left or gave")


class InquiryRecord(_Record):
    """A question about the work that staff asked the student: it takes no points by itself."""

    number: int
    about: str = Field(description="why it was asked, in a word")
    question: str
    place: str = Field(description="the line or cell that it is about; empty: the work as a whole")
    quoted: str = Field(description="what stands there")
    asked: datetime
    explanation: str = Field(description="the student's words; empty: there are none yet")
    explained: datetime | None
    outcome: Literal["dismissed", "confirmed"] | None = Field(description="null: nobody has decided yet")
    reason: str
    settled: datetime | None
    target: str = Field(description="the item whose points changed with that; empty: none did")
    before: float | None
    after: float | None


class ReviewedPointsRecord(_Record):
    """Points that are not those that were reviewed."""

    target: str = Field(description="the rubric item, or a part of one; empty: the grade after lateness")
    before: float | None = Field(description="when they were reviewed; null: they were open")
    after: float | None = Field(description="now")


class ReviewRecord(_Record):
    """The last review of the grade: a person has looked over it. Releases are in the gradebook alone."""

    who: str
    when: datetime
    note: str
    points: float | None = Field(description="the grade that was reviewed; null: there was none")
    stands: bool = Field(description="the grade is still the one that was reviewed")
    other_work: bool = Field(description="another submission counts now")
    changes: list[ReviewedPointsRecord]


class TryRecord(_Record):
    """Whether a submission gets feedback on hidden checks before grades are released."""

    shown: bool
    number: int = Field(description="of the submissions before the deadline, from 1; 0: it came after it")
    feedback: int = Field(description="how many of them get feedback")
    left: int = Field(description="how many more will")
    due: datetime = Field(description="the student's deadline")
    reason: str


class DownloadedFileRecord(_Record):
    """A file of the download, and what became of it."""

    name: str = Field(description="where it lies; what is inside an archive follows the archive's name")
    fate: Literal["matched", "superseded", "refused"]
    student_id: str | None
    reason: str = Field(description="empty for a file whose name is as it was asked for")
    count: int = Field(description="how many files of one kind the record stands for")
    source: str = Field(default="", description="where there are several downloads: in which one it lies")


class LackingRecord(_Record):
    """A submission that the LMS lists, and that is not in its download."""

    student_id: str = Field(description="what the LMS calls the submission where it knows no student's id")
    lms: str = Field(description="empty: a list of the class says that there is one")
    upload: str = Field(description="what the LMS calls the submission; empty: no list says it")
    source: str = Field(
        default="", description="where there are several downloads: which one lacks it; or the list's name"
    )

    @property
    def in_words(self) -> str:
        """What it is, in a sentence."""
        if not self.lms:
            return f"{self.source} says that they handed in, and nothing of it is in a download."
        return f"{self.lms} lists {self.upload}, which is not in {self.source or 'the download'}."


class RosterRecord(_Record):
    """The list of the class, held against who handed in."""

    source: str = Field(description="the name of the list's file")
    students: list[str] = Field(description="ids of all who are on the list, sorted")
    submitted: list[str] = Field(
        default_factory=list,
        description="of those, who has handed in by the list, and had no result when it was read",
    )
    missing: list[str] = Field(description="of those, who has neither a result nor a file in the download")
    unlisted: list[str] = Field(description="who has a result and is not on the list")
    notes: list[str] = Field(description="rows that fit several students, or another row's")


class DownloadRecord(_Record):
    """The account of a whole download: the counts of the files add up to all that were in it."""

    source: str = Field(default="", description="what it was called; empty: in results of an older version")
    matched: int = Field(description="files that belong to a submission, whose own record tells the rest")
    superseded: int = Field(description="files of an earlier attempt")
    refused: int = Field(description="files of nobody, or that cannot be used")
    files: list[DownloadedFileRecord]
    notes: list[str]
    lacking: list[LackingRecord] = Field(
        default_factory=list, description="submissions that the LMS lists, and that are not in it"
    )
    roster: RosterRecord | None = Field(default=None, description="null: no list of the class was given")


class SandboxRecord(_Record):
    """What isolation was on."""

    level: str = Field(description="`strict`, `standard`, `container`, `local` or `unofficial`")
    layers: dict[str, str]
    missing: list[str]
    node: str = Field(
        "", description="the node of a cluster that examined it; empty: the machine with the gradebook"
    )


class SubmissionRecord(_Record):
    """One submission's result."""

    student_id: str
    status: Literal["graded", "incomplete", "refused", "engine_error"]
    total: float | None = Field(
        description="the sum of what is known, before any penalty for lateness; null when refused, withheld "
        "or an engine error, until people gave its points or ruled on it"
    )
    decided: float = Field(description="the maximum of the decided items")
    open_points: float = Field(default=0.0, description="the maximum of the items that a person still marks")
    awaiting: list[str] = Field(description="ids of the items that a person still marks")
    edits: list[EditRecord] = Field(
        default_factory=list, description="a person's changes to the total, by `grader rule`"
    )
    not_run: list[str] = Field(description="ids of the items that were not run on request")
    reason: str
    partial: bool = Field(description="a file was given by itself: the missing-file rule did not apply")
    missing: list[str] = Field(description="roles of required files that were not handed in")
    files: list[AcceptedFileRecord] = Field(
        default_factory=list, description="that count; empty in records of older versions"
    )
    absent: bool = Field(
        default=False, description="nothing was handed in, and a person recorded that: there is no submission"
    )
    accepted: str = Field(
        default="", description="the file that was set aside and counts as the report; empty: there is none"
    )
    refused_files: list[RefusedFileRecord] = Field(description="files that were set aside, with reasons")
    items: list[ItemRecord]
    findings: list[FindingRecord]
    measurements: Measurements
    training: TrainingRecord
    checkpoint: CheckpointRecord
    forbidden: list[ForbiddenRecord]
    tuned: list[TunedRecord]
    plan: PlanRecord | None = Field(default=None, description="null: nothing was read, or an older version")
    study: StudyRecord | None = None
    models: dict[str, ModelRecord] = Field(
        default_factory=dict, description="the further models that are trained, by the measure's id"
    )
    variant: dict[str, Value] = Field(
        default_factory=dict,
        description="the values that were drawn for the student; absent where the assignment draws none",
    )
    notes: list[str]
    sandbox: SandboxRecord
    graded_at: datetime
    received_at: datetime | None = Field(description="by the metadata of the LMS; null: unknown")
    received_hint: datetime | None = Field(
        default=None, description="the files' latest time of modification, which proves nothing"
    )
    received_hint_from: str = Field(default="", description="where the hint is from; empty without one")
    marked_late: bool = Field(default=False, description="the LMS marks it late and not by how much")
    extension: datetime | None = Field(default=None, description="the student's own deadline")
    lower_run: str = Field(
        default="",
        description="the latest run gave less than the student saw, and nobody has looked at that; else "
        "empty",
    )
    late: LatenessRecord | None = Field(default=None, description="null: the assignment has no deadline")
    resubmission: ResubmittedRecord | None = Field(
        default=None, description="null: the assignment allows none, or nothing came after the deadline"
    )
    tries: TryRecord | None = Field(
        default=None, description="null: feedback on hidden checks is not limited before the deadline"
    )
    oral_check: Literal["", "pending", "passed", "failed", "absent", "excused"] = Field(
        default="",
        description="for which the student was picked: while it is pending, or until a person has ruled on "
        "one that was not passed, the total is null; empty: the student was not picked",
    )
    requests: list[RequestRecord] = Field(
        default_factory=list, description="points that the student disputes or has disputed"
    )
    inquiries: list[InquiryRecord] = Field(
        default_factory=list, description="what staff has asked the student about the work"
    )
    review: ReviewRecord | None = Field(
        default=None, description="null: nobody has reviewed the grade, or that was taken back"
    )
    held: str = Field(
        default="",
        description="why nobody knows whose it is, so that its points are nobody's yet; else empty",
    )
    carried_id: str = Field(
        default="", description="of one that is held: the student's id that its files carry in their names"
    )
    owner: str = Field(default="", description="who said whose it is, and why; empty: nobody had to")
    engine: str = Field(description="the engine's version")
    submission_digest: str
    assignment_digest: str


class ResultsDocument(_Record):
    """The results of one assignment: what `results.json` holds."""

    assignment: str
    max: float
    submissions: list[SubmissionRecord] = Field(description="ordered by student id")
    download: DownloadRecord | None = Field(
        default=None, description="all downloads together; null: results of an older version"
    )
    downloads: list[DownloadRecord] = Field(
        default_factory=list, description="each download that was graded, oldest first"
    )
