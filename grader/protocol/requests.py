"""The requests that a judge makes of a worker, typed.

A message travels as a frame: its fields are the document, its arrays the arrays.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from grader.domain.analyzed_program import Program
from grader.domain.program_run import AffineFake
from grader.protocol.trees import ModelMade, Node, OtherValues

Arrays = Mapping[str, Any]  # numpy arrays by name; they travel beside the document
STATE = "state:"  # before the name of each parameter and buffer among a message's arrays
SET = "set:"  # before the names of parameters and buffers that are overwritten first
DRAWN = "drawn:"  # in front of the names of a figure's arrays
FILE = "file:"  # before the name of each file among the arrays of a message
MOST_STATE = 400_000_000  # bytes of a model's parameters and buffers
MOST_TENSORS = 4000  # of one model


@dataclass(frozen=True)
class Load:
    """Execute the program's statements. Reply: Loaded.

    Attributes:
        program: What to execute. Only the executable part of it is kept.
        forbidden: Dotted patterns of what must not be used: each use is reported at once.
        class_names: Of the data set, for a source that reads them from a data set that is not here.
        seed: Of torch, numpy and random.
        device: What the student's `cuda` means: `cpu`, or `cuda` where training runs on a GPU.
    """

    program: Program
    forbidden: tuple[str, ...] = ()
    class_names: tuple[str, ...] = ()
    seed: int = 0
    device: str = "cpu"

    def __post_init__(self) -> None:
        object.__setattr__(self, "program", self.program.executable)


@dataclass(frozen=True)
class FakeForm:
    """What a worker must know of a fake. For each answer, it asks the judge.

    Attributes:
        number: The judge's number for it.
        kind: `function`, `module`, or `class`, which makes such modules from any arguments.
        parameters: The module's: dotted names, as in a state dict, with shapes; all begin as zeros. One
            called `offset` is added to the answer.
        marks: Each call fills the parameters and buffers of the first module among its arguments with the
            number in the answer.
        steps: How many steps the first optimizer among a call's arguments takes.
        methods: Of the module, besides its call: name -> the number of the fake that answers.
        like: Of a module: the graded class. What the fake lacks is looked up in an object of that class.
        arguments: That object's.
    """

    number: int
    name: str
    kind: Literal["function", "class", "module"] = "function"
    parameters: dict[str, tuple[int, ...]] = field(default_factory=dict)
    marks: bool = False
    methods: dict[str, int] = field(default_factory=dict)
    like: str = ""
    arguments: dict[str, bool | int | float | str] = field(default_factory=dict)
    steps: int = 0


@dataclass(frozen=True)
class FakeAnswer:
    """The answer to FakeCalled.

    Attributes:
        tree: Packed: what the fake answers.
        number: Of the call, 1-based.
        refused: There is no answer to such a call.
    """

    tree: Node = None
    number: int = 0
    refused: bool = False
    arrays: Arrays = field(default_factory=dict)


@dataclass(frozen=True)
class Build:
    """Construct a component. Reply: Built.

    Attributes:
        component: A graded class or function that makes a module; or `$model`: the model as the student
            configured it.
        args, kwargs: Packed, each by itself. With `inner`, a fake is the last positional argument
            (PreNorm's fn).
        replace: Component -> the behavior of its fake, while this object is constructed and used.
        fakes: The same for fakes that the judge answers for.
        inner: The behavior of the fake to hand over.
        substitute: Path of a submodule (`blocks.0`) -> the behavior of its fake, which replaces it once the
            object is constructed; its calls are recorded under the path.
        double: Convert to float64.
        seed: Of the initialization.
        made: With `$model`: what it is made with, if the source alone does not say.
    """

    component: str
    args: tuple[Node, ...] = ()
    kwargs: dict[str, Node] = field(default_factory=dict)
    replace: dict[str, AffineFake] = field(default_factory=dict)
    fakes: dict[str, FakeForm] = field(default_factory=dict)
    inner: AffineFake | None = None
    substitute: dict[str, AffineFake] = field(default_factory=dict)
    double: bool = False
    seed: int = 0
    made: ModelMade | None = None
    arrays: Arrays = field(default_factory=dict)


@dataclass(frozen=True)
class Adopt:
    """Take a module that stays in the worker as a component. Reply: Built."""

    handle: int


@dataclass(frozen=True)
class Invoke:
    """Call or use a graded name, or an object that stays in the worker. Reply: Invoked, after some EpochDone.

    Attributes:
        name: The graded name that is called; if empty, `handle` counts.
        handle: The object.
        action: `call` it, or its `member`; `get` its member; `set` its member to the only argument; `fill`:
            put the numbers of the only argument into what its member gives; `keep`: the only argument
            stays in the worker.
        member: A method or an attribute of the object; if empty, the object itself.
        args, kwargs: Packed, each by itself.
        parameters: The stub's, in order: a student may have reordered them.
        fakes: Component -> the fake, answered by the judge, that replaces it meanwhile.
        replace: The same for fakes of known behavior.
        reads: The names of files that are wanted when it is done.
        training: The mode of a module that is called.
        figures: What is drawn is wanted.
        pictures: The figures are also wanted as pixels, which takes a while.
        gradients: Also return the gradients of the sum of what it returned, times `cotangent`, by the tensors
            among its positional arguments.
        cotangent: Packed; None: ones.
        seed: Of torch, numpy and random.
        passes_of: A model: EpochDone is sent for each pass over a shuffled loader in which it is trained, and
            Stepped at the end.
        trainer: The graded function that trains for an epoch: its results belong to these passes.
        arrays: Of the trees; `file:<name>`: the content of files that it finds.
    """

    name: str = ""
    handle: int = -1
    action: Literal["call", "get", "set", "fill", "keep"] = "call"
    member: str = ""
    args: tuple[Node, ...] = ()
    kwargs: dict[str, Node] = field(default_factory=dict)
    parameters: tuple[str, ...] = ()
    fakes: dict[str, FakeForm] = field(default_factory=dict)
    replace: dict[str, AffineFake] = field(default_factory=dict)
    reads: tuple[str, ...] = ()
    training: bool | None = None
    figures: bool = False
    pictures: bool = False
    gradients: bool = False
    cotangent: Node = None
    seed: int = 0
    passes_of: int = -1
    trainer: str = ""
    arrays: Arrays = field(default_factory=dict)


@dataclass(frozen=True)
class Call:
    """Call a built component with the arrays `0`, `1`, ... Reply: Called.

    Before that, parameters and buffers are overwritten by the arrays `set:<name>`, as by SetWeights.

    Attributes:
        train: In training mode, else in evaluation mode.
        without_dropout: With the rates of all dropout layers at zero.
        gradients: Also return the gradients of `(output * cotangent).sum()` by the input `0` and by every
            parameter; `cotangent` comes as an array of that name.
        seed: Of dropout.
        times: Call it so many times, each time with the same arrays; without `gradients`.
    """

    handle: int
    train: bool = False
    gradients: bool = False
    seed: int = 0
    without_dropout: bool = False
    times: int = 1
    arrays: Arrays = field(default_factory=dict)


@dataclass(frozen=True)
class Weights:
    """Return the parameters and buffers of a built component. Reply: WeightValues.

    Before that, they are overwritten by the arrays `set:<name>`, as by SetWeights.
    """

    handle: int
    arrays: Arrays = field(default_factory=dict)


@dataclass(frozen=True)
class SetWeights:
    """Overwrite parameters and buffers of a built component by the arrays of their names. Reply: Done."""

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
        id_bits: How many of an image's first pixels carry its number, lowest bit first, as signs.
        pictures: Whether the figures are wanted as pixels, which takes a while.
        shuffled: The loader gives the images in another order in each pass.
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
    shuffled: bool = False
    arrays: Arrays = field(default_factory=dict)


@dataclass(frozen=True)
class Rows:
    """The answer to a ForwardPass, `rows` float32 (size, classes or k), as an array."""

    arrays: Arrays = field(default_factory=dict)


@dataclass(frozen=True)
class Train:
    """Train the student's model by the program's recipe. Replies: EpochDone for each epoch, then Trained.

    Hidden images are not here: the weights go to a worker in which nothing was trained (MeasureModel).

    Attributes:
        gpu_memory_mb: What it may take of a GPU's memory, in 10**6 bytes; None: all of it.
        sized: The size of the model is wanted at the end.
        other: Values in place of the script's own; None: it trains as it is.
        arrays: `train_images` uint8 (n, h, w[, 3]), `train_labels` int64 (n,).
    """

    class_names: tuple[str, ...]
    device: str = "cpu"
    seed: int = 0
    threads: int = 1
    gpu_memory_mb: int | None = None
    sized: bool = False
    other: OtherValues | None = None
    arrays: Arrays = field(default_factory=dict)


MOST_GLIMPSED = 256


def glimpse_of(images: Any) -> Any:
    """Some of the training images, evenly from all of them, without their labels.

    A worker executes with them how the student's loaders are made, so that a mean that is measured for the
    transform is the same wherever it is measured.

    Args:
        images: uint8 (n, height, width[, 3]).
    """
    return images[:: max(-(-len(images) // MOST_GLIMPSED), 1)]


@dataclass(frozen=True)
class MeasureModel:
    """Build the student's model as its source configures it, to answer with weights that are given. Reply:
    Measurable.

    Attributes:
        seed: Of the initialization: the same as that of the training.
        gpu_memory_mb: As for Train.
        made: What the model is made with, if the source alone does not say.
        arrays: `train_labels` int64 (n,): what the source may count; `glimpse`: see `glimpse_of`;
            `test_images` uint8 (n, h, w[, 3]).
    """

    class_names: tuple[str, ...]
    device: str = "cpu"
    seed: int = 0
    gpu_memory_mb: int | None = None
    made: ModelMade | None = None
    arrays: Arrays = field(default_factory=dict)


@dataclass(frozen=True)
class Answer:
    """Put weights into the model that was built for measuring, and answer. Reply: Answered.

    Attributes:
        attention_of: Test images whose attention weights are wanted, by their indices.
        inputs_of: Test images that are wanted as the model is fed them, by their indices.
        arrays: `state:<name>`: the parameters and buffers; perhaps `probe`: inputs, float32 (images,
            channels, height, width), for which it is to answer too; perhaps `seen`: images like the test
            images, uint8 (images, h, w[, 3]), for which it is to answer too.
    """

    attention_of: tuple[int, ...] = ()
    inputs_of: tuple[int, ...] = ()
    arrays: Arrays = field(default_factory=dict)


@dataclass(frozen=True)
class LoadCheckpoint:
    """Load weights into the student's model and answer for images. Reply: CheckpointLoaded.

    Attributes:
        arrays: `file` uint8 (bytes,); `glimpse`: see `glimpse_of`; `test_images` uint8 (n, h, w[, 3]).
    """

    device: str = "cpu"
    max_bytes: int = 1_000_000_000
    arrays: Arrays = field(default_factory=dict)


@dataclass(frozen=True)
class Prove:
    """Use every part that is watched, without effect, so that each reports it (Tried). Reply: Done."""

    token: int


Request = (
    Prove
    | Load
    | Build
    | Adopt
    | Invoke
    | Call
    | Weights
    | SetWeights
    | RunFunction
    | Train
    | MeasureModel
    | Answer
    | LoadCheckpoint
)
