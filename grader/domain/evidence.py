"""The evidence about a submission: enough to score it again without running anything.

Judge, training, gradebook, scoring, reports and exports exchange these types; similarity has its own
(`grader.similarity.compared_work`).
"""

from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from operator import attrgetter
from typing import Self

from grader.domain.analyzed_program import Claim, ForbiddenUse, NearName, Note, Omission, TunedValue
from grader.domain.assignment import TEST_ACCURACY
from grader.domain.assignment_versions import Value
from grader.domain.measure import StudyAgain
from grader.domain.program_run import Plan, Pried, Stage
from grader.domain.submission import AcceptedFile, Answers, Delivery, Origin, RefusedFile


class Status(StrEnum):
    """The outcome of a check."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"  # its precondition failed; the message says which
    ERRORED = "errored"  # our fault, or the instructor's: never costs a point


class FindingKind(StrEnum):
    """How a check ended, as the grader itself sees it, whatever the check asks for."""

    NOT_IMPLEMENTED = "not_implemented"  # the stub was not written yet
    MISSING_NAME = "missing_name"  # the part is not defined
    BROKEN_CELL = "broken_cell"  # it is not defined because a cell is not correct Python
    HANGS = "hangs"  # the code did not return in time
    DIES = "dies"  # its process ended
    NONSENSE = "nonsense"  # its process wrote something that is not an answer
    BUSY_MACHINE = "busy_machine"  # other programs kept the machine busy, so that nothing is known
    NO_PROCESS = "no_process"  # the machine gave the code no process, so that nothing is known
    UNDECIDED = "undecided"  # the check leaves the decision to a person
    ADVICE = "advice"  # it passed, and the student is told what would be better


class Blame(StrEnum):
    """Whose task it is to fix a finding."""

    STUDENT = "student"
    INSTRUCTOR = "instructor"
    ENGINE = "engine"


@dataclass(frozen=True, slots=True)  # a class of 1,000 has 50,000 of them
class Finding:
    """What one check found.

    Attributes:
        check: The check's id.
        component: The stub's name, or `submission`.
        title: What the check asks for, in a sentence: the first line of its docstring.
        blame: Whose fault a finding that is not `passed` is; None if it passed.
        diagnosis: The id of the mistake that was recognized (`missing_scale`), if any.
        message: What is wrong, in words for the student; if it passed, what `policy` is about.
        hint: One thing to try.
        where: The place in the student's file, `homework.py:41` or `In [4], line 3 (cell 9)`.
        seconds: How long the check took.
        kind: What the grader itself saw, if it is not one of the assignment's mistakes.
        policy: If it passed: the policy (`fixed_positions`) by which a person looks at it, or, of the kind
            `advice`, the student is told; it costs nothing; empty in some records of older versions. None:
            there is nothing to say.
        because: If it is folded: the id of the check of the same component that has the cause, which is not
            itself folded. If it passed without being run: the first of the checks that show that it holds.
    """

    check: str
    component: str
    title: str
    status: Status
    blame: Blame | None = None
    diagnosis: str | None = None
    message: str = ""
    hint: str = ""
    where: str = ""
    seconds: float = 0.0
    kind: FindingKind | None = None
    policy: str | None = None
    because: str | None = None

    @property
    def flagged(self) -> bool:
        """Whether it passed, but a person should look at it."""
        return self.status is Status.PASSED and self.policy is not None and not self.is_advice

    @property
    def is_advice(self) -> bool:
        """Whether it passed, and the student is told what would be better; nobody has to look at it."""
        return self.status is Status.PASSED and self.kind is FindingKind.ADVICE

    @property
    def has_remark(self) -> bool:
        """Whether it passed, with something to say."""
        return self.flagged or self.is_advice

    @property
    def label(self) -> str | None:
        """Its name in one word: the mistake, the policy or what the grader saw."""
        return self.diagnosis or self.policy or (self.kind.value if self.kind is not None else None)

    def __reduce__(self) -> tuple[type[Self], tuple[object, ...]]:
        # pickled by its values: the way of dataclasses with slots looks up the fields of each one
        return type(self), _values(self)


_values = attrgetter(*Finding.__match_args__)


@dataclass(frozen=True)
class LayerSummary:
    """One module of the student's model.

    Attributes:
        path: `transformer.layers.0.0.norm`; empty for the model itself.
        type: The class's name.
        parameters: Trainable numbers that the module itself holds (not its children).
        depth: Nesting depth, 0 for the model itself.
    """

    path: str
    type: str
    parameters: int
    depth: int


@dataclass(frozen=True)
class Epoch:
    """One epoch of training as the judge measured it (losses are means of cross-entropy per image, in nats).

    Attributes:
        number: 1-based.
        train_loss: Mean of the losses that the student's function that trains for an epoch reported; None:
            it reported none. For staff, as the learning rate and the time are: the student's code controls
            them.
        test_loss: On the hidden test images; NaN if the model's outputs are not finite.
        test_accuracy: On the hidden test images, 0 to 1; those without finite outputs count as wrong.
        learning_rate: Of the first parameter group, at the end of the epoch.
        seconds: Wall time of training, and of the model's answers for the test images.
        augmented_accuracy: Like `test_accuracy`, but with the randomness of the student's test transform;
            None if it has none.
    """

    number: int
    train_loss: float | None
    test_loss: float
    test_accuracy: float
    learning_rate: float
    seconds: float
    augmented_accuracy: float | None = None


@dataclass(frozen=True)
class Prediction:
    """One hidden test image and the model's answer.

    Attributes:
        image: The name of one of the images that belong to the evidence (PNG).
        true_class, predicted_class: Indices into the class names.
        confidence: The softmax probability of the predicted class, 0 to 1.
        likeliest: The three classes with the highest probabilities and their probabilities, highest first.
    """

    image: str
    true_class: int
    predicted_class: int
    confidence: float
    likeliest: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True)
class RocCurve:
    """The receiver operating characteristic of a class against all others.

    Attributes:
        area: Under the curve, 0 to 1; None if there is no curve.
        points: (false positive rate, true positive rate), both 0 to 1, from the origin on.
    """

    area: float | None
    points: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True)
class AttentionMap:
    """Where the class token (without one, the mean over the tokens) looks in one hidden test image.

    Attributes:
        prediction: The name of the image in `Training.predictions`.
        last_layer: The name of one of the images that belong to the evidence (PNG): the last layer, the mean
            over its heads.
        rollout: The same for the rollout over all layers (Abnar and Zuidema, 2020).
    """

    prediction: str
    last_layer: str
    rollout: str


class TrainingOutcome(StrEnum):
    """How training ended."""

    COMPLETED = "completed"
    FAILED = "failed"  # the student's code raised, returned nonsense or died: `reason` says what
    DIVERGED = "diverged"  # in the end, the outputs were infinite or NaN
    BUDGET = "budget"  # our limit stopped it: unknown, never zero
    NOT_RUN = "not_run"  # --no-train, or nothing to train
    UNKNOWN = "unknown"  # a person must look: `reason` says why


@dataclass(frozen=True)
class UnfinishedRun:
    """A repetition of the training that did not finish: its accuracy is unknown.

    Attributes:
        number: Its number among the trainings, 2 for the first repetition.
        reason: A sentence.
        where: The place in the student's file, if the student's code raised.
        projected_seconds: The time that all its epochs would take, if that exceeds our limit.
    """

    number: int
    outcome: TrainingOutcome
    reason: str
    where: str = ""
    projected_seconds: float | None = None


@dataclass(frozen=True)
class Training:
    """The measured training of the student's model.

    Attributes:
        outcome: How it ended.
        reason: A sentence, if it did not complete.
        where: The place in the student's file, if the student's code raised.
        data: The data set's name, `neu_cls` or `synthetic_steel`.
        device: `cpu`, or the GPU's name.
        classes: Class names in the order of the confusion matrix.
        epochs: One per finished epoch; of a training that diverged, up to then.
        planned_epochs: The number of epochs that the student's code asks for.
        stages: Of the first training: in which loop, with which optimizer. For staff, like the learning rate.
        accuracy: The accuracy, 0 to 1, where images are classified. It counts if `value` is None; then it is
            the mean of `runs`, if there are several.
        value: The number that counts, if the assignment has a measuring function of its own, in its unit.
        counted: The weights that were measured: a clause.
        rebuilt: Whether the student's own loop could not be executed, and the training follows its values.
        interval: The 95 % interval of what counts: see `accuracy_interval` and `value_interval`.
        runs: The measurements of all completed trainings, if it was repeated with other seeds. All other
            fields are about the first.
        unfinished: The repetitions that were not completed.
        confusion: Rows are true classes, columns predicted: counts.
        seen_accuracy: On some of its training images, without augmentation, 0 to 1.
        roc: A curve for each class.
        predictions: Four per class.
        attention: For one image per class, if the model's attention could be read.
        notes: The assumptions made, in the words of a training worker. For staff, as that worker had seen the
            images of a split.
        seconds: Of training in total.
        projected_seconds: The time that all epochs would take, if that exceeds our limit.
        steps_per_batch: How many optimizer steps were taken for each batch of the training loader, in the
            epoch with most of them; None: not counted.
        doubts: Sentences on why the student's training may be worth more than was measured.
        objections: Sentences on why the measured model may not be the one that was checked, or was trained
            more than was asked for.
    """

    outcome: TrainingOutcome
    reason: str = ""
    where: str = ""
    data: str = ""
    device: str = "cpu"
    classes: tuple[str, ...] = ()
    epochs: tuple[Epoch, ...] = ()
    planned_epochs: int | None = None
    stages: tuple[Stage, ...] = ()
    accuracy: float | None = None
    value: float | None = None
    counted: str = ""
    rebuilt: bool = False
    interval: tuple[float, float] | None = None
    runs: tuple[float, ...] = ()
    unfinished: tuple[UnfinishedRun, ...] = ()
    confusion: tuple[tuple[int, ...], ...] = ()
    seen_accuracy: float | None = None
    roc: tuple[RocCurve, ...] = ()
    predictions: tuple[Prediction, ...] = ()
    attention: tuple[AttentionMap, ...] = ()
    notes: tuple[Note, ...] = ()
    seconds: float = 0.0
    projected_seconds: float | None = None
    steps_per_batch: float | None = None
    doubts: tuple[str, ...] = ()
    objections: tuple[str, ...] = ()

    @property
    def stopped(self) -> tuple["Training | UnfinishedRun", ...]:
        """The training and its repetitions, as far as our limit stopped them."""
        attempts: tuple[Training | UnfinishedRun, ...] = (self, *self.unfinished)
        return tuple(attempt for attempt in attempts if attempt.outcome is TrainingOutcome.BUDGET)

    @property
    def measured(self) -> float | None:
        """The number that counts: the assignment's own measure, else the accuracy."""
        return self.value if self.value is not None else self.accuracy

    def class_name(self, index: int) -> str:
        """The name of a class."""
        return self.classes[index] if 0 <= index < len(self.classes) else f"class {index}"


@dataclass(frozen=True)
class Checkpoint:
    """The outcome for the submitted weights.

    Attributes:
        status: `fits` (loaded into the submitted model), `mismatch`, `whole_model` (pickled, not loaded; it
            counts as handed in), `refused`, `missing`, `not_tried`.
        reason: A sentence that names the file and the remedy, unless it fits.
        accuracy: On hidden test images, 0 to 1; the weights may have been trained on them.
        withheld: The number of these images, if only those that students never got are used; 0: all are.
    """

    status: str
    reason: str = ""
    accuracy: float | None = None
    withheld: int = 0


@dataclass(frozen=True)
class TrainedModel:
    """The outcome for one of several models that are trained.

    Attributes:
        plan: Which part of the program is trained, and why.
        checkpoint: The outcome for its submitted weights.
    """

    plan: Plan = field(default_factory=Plan)
    training: Training = Training(TrainingOutcome.NOT_RUN)
    checkpoint: Checkpoint = Checkpoint("not_tried")


@dataclass(frozen=True)
class Figure:
    """A figure that the student's plotting function drew on rigged data.

    Attributes:
        component: The one that drew it (`plot_confusion_matrix`).
        image: The name of one of the images that belong to the evidence (PNG).
    """

    component: str
    image: str


@dataclass(frozen=True)
class Attestation:
    """The isolation that was active, observed before the submission was loaded.

    Attributes:
        level: `strict`, `standard`, `container` (a package inside of another grader), `local` (a student's
            own machine) or `unofficial`.
        layers: Layer -> what was observed (`"seccomp": "2"`, `"uid": "65534"`, `"gpu": "true"`, ...).
        missing: Sentences on the layers that this machine does not provide.
    """

    level: str
    layers: dict[str, str] | None = None
    missing: tuple[str, ...] = ()

    @property
    def weak(self) -> bool:
        """Whether something ran, or was read, with less isolation than official grades require.

        It is false if nothing was observed, because then nothing of the submission ran.
        """
        return self.level == "unofficial" and (self.layers is not None or bool(self.missing))


@dataclass(frozen=True)
class Evidence:
    """All that was found out about a submission.

    Attributes:
        status: None if it can be graded; otherwise `refused` or `engine_error`.
        reason: Why, in a sentence.
        missing: The roles of required files that were not handed in.
        files: Those that count.
        received_at: When it was handed in, if the LMS records it.
        delivery: What else is known about that: hints, marks, the student's own deadline.
        partial: Whether only a single file was given.
        absent: Whether nothing was handed in, as a person recorded: there is no submission.
        team: The ids of all who handed it in together, sorted; () for a student's own.
        origin: The upload that it comes from.
        claim: The test accuracy that the student reports, if one was found.
        shown_epochs: The last epoch that the notebook's outputs show.
        answers: The PDF that people mark; None if none was accepted, and in records of versions that did not
            keep it.
        parameters: Trainable numbers of the student's model as the student configured it.
        layers: That model's modules.
        measure: The id of the first model's measure.
        plan: Which part of it is trained, and why. If several models are trained, this, the training and the
            checkpoint are those of the first.
        study: The results of the study's rows that were trained again; None: none were.
        further: The other models that are trained, by the measure's id.
        pried: Where running code pried, for a person.
        unproven: The stages after which the watch for forbidden parts failed its test.
        not_run: Stages that were not run on request: `training`.
        engine: The engine's version.
        assignment_digest: Of the assignment at that time.
        attempt: Which of the student's attempts it is, 1 for the first: it decides the hidden split. None if
            nothing was to be trained, and in records of versions with one split for all.
        data_digest: Of the images and their split; empty if nothing was to be trained.
        variant: The values that were drawn for the student, by name, if the assignment draws any.
        seconds: Stage -> wall seconds.
        node: The node of a cluster that examined it; empty: the machine with the gradebook.
    """

    student_id: str
    assignment_id: str
    submission_digest: str
    graded_at: datetime
    status: str | None = None
    reason: str = ""
    received_at: datetime | None = None
    delivery: Delivery = field(default_factory=Delivery)
    partial: bool = False
    absent: bool = False
    team: tuple[str, ...] = ()
    origin: Origin = field(default_factory=Origin)
    code_file: str = ""
    missing: tuple[str, ...] = ()
    files: tuple[AcceptedFile, ...] = ()
    refused_files: tuple[RefusedFile, ...] = ()
    notes: tuple[Note, ...] = ()
    findings: tuple[Finding, ...] = ()
    near_names: tuple[NearName, ...] = ()
    omissions: tuple[Omission, ...] = ()
    forbidden: tuple[ForbiddenUse, ...] = ()
    pried: tuple[Pried, ...] = ()
    unproven: tuple[str, ...] = ()
    tuned: tuple[TunedValue, ...] = ()
    source: dict[str, str] | None = None
    claim: Claim | None = None
    shown_epochs: int | None = None
    answers: Answers | None = None
    parameters: int | None = None
    layers: tuple[LayerSummary, ...] = ()
    measure: str = TEST_ACCURACY
    plan: Plan = field(default_factory=Plan)
    training: Training = Training(TrainingOutcome.NOT_RUN)
    checkpoint: Checkpoint = Checkpoint("not_tried")
    further: dict[str, TrainedModel] = field(default_factory=dict)
    study: StudyAgain | None = None
    figures: tuple[Figure, ...] = ()
    not_run: tuple[str, ...] = ()
    attestation: Attestation = Attestation("unofficial")
    engine: str = ""
    assignment_digest: str = ""
    attempt: int | None = None
    data_digest: str = ""
    variant: dict[str, Value] = field(default_factory=dict)
    seconds: dict[str, float] | None = None
    node: str = ""

    @property
    def came_at(self) -> datetime:
        """When it was handed in; where nothing tells, when it was graded."""
        return self.received_at or self.graded_at

    @property
    def chosen(self) -> tuple[TunedValue, ...]:
        """The values that the student chose: as the source has them, but the batch size as it was tried."""
        size = self.plan.rehearsal.batch_size if self.plan.rehearsal is not None else None
        return tuple(
            replace(value, value=str(size)) if size is not None and value.name == "batch_size" else value
            for value in self.tuned
        )

    @property
    def trainings(self) -> tuple[Training, ...]:
        """The trainings of all models."""
        return (self.training, *(model.training for model in self.further.values()))

    def of_measure(self, measure: str) -> "Evidence":
        """The evidence about one of the trained models, as if it were the only one.

        Args:
            measure: Its measure's id.
        """
        if measure == self.measure:
            return replace(self, further={}) if self.further else self
        model = self.further.get(measure, TrainedModel())
        return replace(
            self,
            measure=measure,
            plan=model.plan,
            training=model.training,
            checkpoint=model.checkpoint,
            further={},
            parameters=None,
            claim=None,  # it is about the first model, as are the outputs' epochs
            shown_epochs=None,
        )
