"""The requests that a judge makes of a worker and the replies that it may get, typed.

A message travels as a frame: its fields are the document, its arrays the arrays.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from grader.domain.program import Program
from grader.domain.standin import StandIn

Arrays = Mapping[str, Any]  # numpy arrays by name; they travel beside the document


# --- requests -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Load:
    """Execute the program's statements. Reply: Loaded.

    Attributes:
        program: What to execute.
        forbidden: Dotted patterns that must not be reached at run time (their import or construction is
            recorded).
        class_names: Of the data set; what the source takes from a data set it does not have.
        seed: Of torch, numpy and random.
        device: What the student's `cuda` means: `cpu`, or `cuda` where training runs on a GPU.
    """

    program: Program
    forbidden: tuple[str, ...] = ()
    class_names: tuple[str, ...] = ()
    seed: int = 0
    device: str = "cpu"


@dataclass(frozen=True)
class Build:
    """Construct a component. Reply: Built.

    Attributes:
        component: A graded class, or `$model`: the model as the student configured it.
        args, kwargs: JSON values. With `inner`, a stand-in is the last positional argument (PreNorm's fn).
        replace: Component -> its stand-in, while this object is constructed and used.
        inner: The stand-in to hand over.
        substitute: Path of a submodule (`blocks.0`) -> the stand-in that takes its place once the object is
            constructed; its calls are recorded under the path.
        double: Convert to float64.
        seed: Of the initialization.
    """

    component: str
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    replace: dict[str, StandIn] = field(default_factory=dict)
    inner: StandIn | None = None
    substitute: dict[str, StandIn] = field(default_factory=dict)
    double: bool = False
    seed: int = 0


@dataclass(frozen=True)
class Call:
    """Call a built component with the arrays `0`, `1`, ... Reply: Called.

    Attributes:
        train: In training mode, else in evaluation mode.
        gradients: Also return the gradients of `(output * cotangent).sum()` by the input `0` and by every
            parameter; `cotangent` comes as an array of that name.
        seed: Of dropout.
    """

    handle: int
    train: bool = False
    gradients: bool = False
    seed: int = 0
    arrays: Arrays = field(default_factory=dict)


@dataclass(frozen=True)
class Weights:
    """Return the parameters and buffers of a built component. Reply: WeightValues."""

    handle: int


@dataclass(frozen=True)
class SetWeights:
    """Overwrite parameters of a built component by the arrays of their names. Reply: Done."""

    handle: int
    arrays: Arrays = field(default_factory=dict)


@dataclass(frozen=True)
class RunFunction:
    """Run `train_epoch`, `evaluate` or a plotting function on a rigged model and loader. Reply: Ran.

    The rigged model asks for the rows of the images that it is given (ForwardPass), which the judge answers
    (Rows): they are the logits (evaluate, plots), or features, and `features @ W` with the trainable W that
    starts at `weights` are (train_epoch). A function that does not ask the model cannot know them.

    Attributes:
        function: The graded function's name.
        roles: What its parameters are, in the handed-out order: `model`, `optimizer`, `data_loader`,
            `loss_history`, `class_names`.
        batch_sizes: How the loader cuts the images.
        class_names: Of the data set.
        initial_mode: The mode in which the model is handed over: `train` or `eval`.
        learning_rate: Of the rigged SGD.
        id_bits: How many pixels of an image's first row carry its number, lowest bit first, as signs.
        pictures: Whether the figures are wanted as pixels, which takes a while.
        arrays: `images` float32 (n, 1, height, width), `labels` int64 (n,), and for train_epoch `weights`
            float32 (k, classes).
    """

    function: str
    roles: tuple[str, ...]
    batch_sizes: tuple[int, ...]
    class_names: tuple[str, ...]
    initial_mode: Literal["train", "eval"] = "eval"
    learning_rate: float = 0.1
    keyword_arguments: dict[str, Any] = field(default_factory=dict)
    id_bits: int = 0
    seed: int = 0
    pictures: bool = True
    arrays: Arrays = field(default_factory=dict)


@dataclass(frozen=True)
class Rows:
    """The answer to a ForwardPass, `rows` float32 (size, classes or k), as an array."""

    arrays: Arrays = field(default_factory=dict)


@dataclass(frozen=True)
class Train:
    """Train the student's model by the program's recipe. Replies: EpochDone for each epoch, then Trained.

    Attributes:
        attention_of: Test images whose attention weights are wanted, by their indices.
        arrays: `train_images` uint8 (n, h, w[, 3]), `train_labels` int64 (n,), `test_images` uint8.
    """

    class_names: tuple[str, ...]
    device: str = "cpu"
    seed: int = 0
    threads: int = 1
    attention_of: tuple[int, ...] = ()
    arrays: Arrays = field(default_factory=dict)


@dataclass(frozen=True)
class LoadCheckpoint:
    """Load weights into the student's model and answer for images. Reply: CheckpointLoaded.

    Attributes:
        arrays: `file` uint8 (bytes,), `test_images` uint8 (n, h, w[, 3]).
    """

    device: str = "cpu"
    max_bytes: int = 1_000_000_000
    arrays: Arrays = field(default_factory=dict)


Request = Load | Build | Call | Weights | SetWeights | RunFunction | Train | LoadCheckpoint


# --- replies --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Problem:
    """Something that the student's code raised.

    Attributes:
        type: The exception's class name.
        message: Its first 500 characters.
        where: The innermost line of the student's, as a place; empty when there is none.
        line: That line's text.
    """

    type: str
    message: str
    where: str = ""
    line: str = ""


@dataclass(frozen=True)
class Raised:
    """The request was not fulfilled.

    Attributes:
        whose: `student`: the student's code raised. `recipe`: the source does not say how to train.
            `engine`: the worker's own code failed, which costs nobody a point.
    """

    problem: Problem
    whose: Literal["student", "recipe", "engine"] = "student"


@dataclass(frozen=True)
class Loaded:
    """The program was executed.

    Attributes:
        kinds: Graded name -> `class`, `function` or `other`, for those that exist.
        problems: Statements that raised; the others were executed all the same.
        stand_ins: Modules that are not installed here and were replaced by inert ones.
        forbidden: Forbidden parts that were imported while loading.
    """

    kinds: dict[str, str]
    problems: tuple[Problem, ...] = ()
    stand_ins: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()


@dataclass(frozen=True)
class Parameter:
    """One parameter: its name, shape, and the names that share its storage (itself included)."""

    name: str
    shape: tuple[int, ...]
    trainable: bool
    shared_with: tuple[str, ...] = ()


@dataclass(frozen=True)
class Module:
    """One module of the tree.

    Attributes:
        path: Dotted; empty for the root.
        type: The class's name.
        origin: The module that defines the class (`torch.nn.modules.linear`).
        parameters: Trainable numbers of its own.
        dropout: The rate, for dropout layers.
    """

    path: str
    type: str
    origin: str
    parameters: int
    dropout: float | None = None


Plain = bool | int | float | str | None

MAX_MADE = 256  # constructions that are told of one component
MAX_ARGUMENTS = 32  # of one construction, positional and named ones each
MAX_NUMBER = 2**53  # whole numbers stay below, where a float can hold each of them
MAX_TEXT = 200  # characters


@dataclass(frozen=True)
class StandInMade:
    """One construction of a stand-in, with the arguments that it was given.

    Attributes:
        component: Which one.
        args, kwargs: Plain values as they are, within the sizes above; whatever else (modules, tensors,
            NaN) as None.
    """

    component: str
    args: tuple[Plain, ...] = ()
    kwargs: dict[str, Plain] = field(default_factory=dict)


@dataclass(frozen=True)
class Built:
    """A component was constructed."""

    handle: int
    parameters: tuple[Parameter, ...]
    modules: tuple[Module, ...]
    made: tuple[StandInMade, ...] = ()
    forbidden: tuple[str, ...] = ()


@dataclass(frozen=True)
class StandInCall:
    """One call of a stand-in.

    Attributes:
        component: Which one.
        instance: Its number, 0-based, in order of construction; -1 for `inner`.
        shape: Of its input.
    """

    component: str
    instance: int
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Called:
    """A component was called.

    Attributes:
        result: `tensor`, or what came instead, in words (`tuple`, `None`).
        calls: The stand-ins' calls in order; their inputs are the arrays `call0`, `call1`, ...
        arrays: `output`; with gradients also `gradient:input` and `gradient:<parameter>`.
    """

    result: str
    calls: tuple[StandInCall, ...] = ()
    no_gradient: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()
    arrays: Arrays = field(default_factory=dict)


@dataclass(frozen=True)
class WeightValues:
    """The parameters and buffers by name, as arrays."""

    arrays: Arrays = field(default_factory=dict)


@dataclass(frozen=True)
class Done:
    """Done, nothing to say."""


@dataclass(frozen=True)
class Axes:
    """One axes of a figure.

    Attributes:
        images, heat_maps: The numbers of arrays `image<k>`.
        row_names, column_names: The tick label beside each row and column of the first image or heat map
            with up to 40 of them, in the order of its array; empty where there is none.
        headings: Titles of the subfigures that it is in, and texts of the figure beside or above it.
        place: Left, bottom, right and top as shares of the figure.
    """

    title: str = ""
    x_label: str = ""
    y_label: str = ""
    x_ticks: tuple[str, ...] = ()
    y_ticks: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    images: tuple[int, ...] = ()
    heat_maps: tuple[int, ...] = ()
    row_names: tuple[str, ...] = ()
    column_names: tuple[str, ...] = ()
    headings: tuple[str, ...] = ()
    place: tuple[float, float, float, float] = (0.0, 0.0, 1.0, 1.0)


@dataclass(frozen=True)
class DrawnFigure:
    """One figure; its pixels are the array `figure<pixels>`, uint8 (height, width, 4); -1: not drawn."""

    pixels: int
    title: str = ""
    axes: tuple[Axes, ...] = ()


@dataclass(frozen=True)
class ForwardPass:
    """A forward pass of the rigged model, which asks for the rows of its images. Answered by Rows.

    Attributes:
        size: Images in the batch.
        training: The mode.
        gradients: Whether gradients were enabled.
        images: The images' ids, in order.
    """

    size: int
    training: bool
    gradients: bool
    images: tuple[int, ...]


@dataclass(frozen=True)
class Ran:
    """A function was run.

    Attributes:
        printed: What it printed, the end of it.
        returned_kind: What it returned, in words.
        history_problem: What is wrong with the history (a tensor with a graph, ...), in words.
        steps: Optimizer steps taken.
        events: `zero_grad`, `forward`, `backward`, `step`, in order, the first 4000.
        training_after: The model's mode afterwards.
        gradients_after: Whether gradients were enabled afterwards.
        figures: What was drawn.
        arrays: `returned` and `history` float64 (numbers,): what it returned and what it left in the
            loss_history, flattened; `weights` (k, classes) afterwards; `logit_gradients` (n, classes) of
            the first pass over each image; `step_gradients` (steps, k, classes) as the optimizer used
            them; the figures' arrays.
    """

    printed: str
    returned_kind: str
    history_problem: str = ""
    steps: int = 0
    events: tuple[str, ...] = ()
    training_after: bool = False
    gradients_after: bool = True
    figures: tuple[DrawnFigure, ...] = ()
    arrays: Arrays = field(default_factory=dict)


@dataclass(frozen=True)
class TrainingPlan:
    """What is about to be trained, before the first epoch.

    Attributes:
        epochs: As the student's code asks for.
        notes: Sentences: what had to be assumed.
        rebuilt: The student's own loop could not be executed: training follows the values in it.
    """

    epochs: int
    batch_size: int
    optimizer: str
    scheduler: str
    device: str
    notes: tuple[str, ...] = ()
    rebuilt: bool = False


@dataclass(frozen=True)
class EpochDone:
    """One epoch was trained.

    Attributes:
        learning_rate: Of the first parameter group of the optimizer that stepped last.
        arrays: `reported` float64 (numbers,): the losses that train_epoch appended or returned during this
            epoch; `logits` float32 (test images, classes), without the chance in the student's test
            transform; `augmented`, the same with it, where there is some.
    """

    number: int
    learning_rate: float
    arrays: Arrays = field(default_factory=dict)


@dataclass(frozen=True)
class Trained:
    """Training is complete.

    Attributes:
        epochs: How many; fewer than planned where the student's loop stops early.
        restored: The student's code put other weights into the model than those of the last epoch.
        arrays: `logits` and perhaps `augmented`, as of an epoch, of the model as the student's code leaves
            it; `attention` float32 (images, layers, tokens, tokens), the mean over heads, where it was asked
            for and can be read.
    """

    epochs: int
    restored: bool = False
    arrays: Arrays = field(default_factory=dict)


@dataclass(frozen=True)
class CheckpointLoaded:
    """The checkpoint was tried.

    Attributes:
        status: `fits`, `mismatch`, `whole_model` (pickled) or `refused`.
        reason: Why, in words; empty when it fits.
        arrays: `logits` float32 (test images, classes) when it fits.
    """

    status: str
    reason: str = ""
    arrays: Arrays = field(default_factory=dict)


Reply = (
    Raised
    | Loaded
    | Built
    | Called
    | WeightValues
    | Done
    | ForwardPass
    | Ran
    | TrainingPlan
    | EpochDone
    | Trained
    | CheckpointLoaded
)
