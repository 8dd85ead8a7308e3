"""The replies that a worker may give, typed. They travel like requests.

`typed_messages` refuses fields of a wrong type. What they hold is untrusted until whoever asked has checked
it (`grader.judge.untrusted_replies`); only a `Problem` makes itself harmless.
"""

import re
from dataclasses import dataclass, field
from typing import Literal

from grader.domain.formatting import Said
from grader.domain.program_run import Prying
from grader.protocol.error_kinds import UNUSABLE, Gap, exception_in_words, usable_name
from grader.protocol.requests import Arrays
from grader.protocol.trees import ModelMade, Node, Plain

Flaw = Literal["", "no_module", "other_outputs", "no_learning_rate"]
WITHOUT_WORDS = Said("")
MAX_MESSAGE = 500  # characters of an exception's text
MAX_PLACE = 160  # characters of the place of a file: names of models are long
_PLACE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.=+-]*(?:/[A-Za-z0-9_][A-Za-z0-9_.=+-]*)*")
Resource = Literal["", "memory", "file_size", "disk", "writing", "open_files", "processes"]


@dataclass(frozen=True)
class Problem:
    """Something that the student's code raised, as reported by its worker.

    Attributes:
        type: The exception's class name: an ASCII identifier of at most 80 characters, else UNUSABLE.
        message: Its first 500 characters.
        where: The innermost line of the student's code, as a place; empty if there is none.
        resource: Which of the resources that a process has limits on was refused, by the exception's class or
            error number. Whether it was our limit that refused it is measured outside.
        seen: The flaw that our own code saw, if the student's code did not raise by itself.
        gpu_share: If memory ran out: how much of the GPU's memory was taken, by PyTorch or others, 0 to 1.
        wanted: Where the assignment would provide a file that the code asked for and that does not exist: its
            place in a cache, or its name; empty if the problem is another one.
    """

    type: str
    message: Said = WITHOUT_WORDS
    where: str = ""
    resource: Resource = ""
    seen: Flaw = ""
    gpu_share: float = 0.0
    wanted: str = ""

    def __post_init__(self) -> None:
        # on both sides of the boundary: a worker may send anything
        object.__setattr__(self, "type", self.type if usable_name(self.type) else UNUSABLE)
        object.__setattr__(self, "message", Said(self.message.text[:MAX_MESSAGE]))
        usable = len(self.wanted) <= MAX_PLACE and _PLACE.fullmatch(self.wanted) is not None
        object.__setattr__(self, "wanted", self.wanted if usable else "")

    def __str__(self) -> str:
        words = f": {self.message}" if self.message.text.strip() else " without a message"
        return f"{exception_in_words(self.type)}{words}"


@dataclass(frozen=True)
class Raised:
    """The request was not fulfilled.

    Attributes:
        whose: `student`: the student's code raised. `recipe`: the source does not say how to train.
            `engine`: the worker's own code failed, which costs nobody a point.
        gap: What the source does not say, for `recipe`.
    """

    problem: Problem
    whose: Literal["student", "recipe", "engine"] = "student"
    gap: Gap = ""


@dataclass(frozen=True)
class Loaded:
    """The program was executed.

    Attributes:
        kinds: Graded name -> `class`, `function` or `other`, for those that exist.
        problems: Statements that raised; the others were executed all the same.
        absent_modules: Modules that are not installed here and were replaced by inert placeholders.
    """

    kinds: dict[str, str]
    problems: tuple[Problem, ...] = ()
    absent_modules: tuple[str, ...] = ()


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


MAX_MADE = 256  # constructions that are reported of one component


@dataclass(frozen=True)
class FakeConstruction:
    """One construction of a fake of known behavior, with its arguments.

    Attributes:
        component: Which one.
        args, kwargs: Plain values as they are, within this module's sizes. Anything else (modules, tensors,
            NaN) is None.
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
    made: tuple[FakeConstruction, ...] = ()


@dataclass(frozen=True)
class AffineFakeCall:
    """One call of a fake of known behavior.

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
        calls: The calls of fakes of known behavior, in order; their inputs are the arrays `call0`, `call1`,
            ...
        calls_by: How many of these there were when the component had returned once, twice, ...
        arrays: `output`, and `output1`, ... if it was called several times; with gradients also
            `gradient:input` and `gradient:<parameter>`.
    """

    result: str
    calls: tuple[AffineFakeCall, ...] = ()
    no_gradient: tuple[str, ...] = ()
    calls_by: tuple[int, ...] = ()
    arrays: Arrays = field(default_factory=dict)


@dataclass(frozen=True)
class FakeCalled:
    """A fake is called, and its answer is wanted. Answered by FakeAnswer.

    Attributes:
        number: Of the fake.
        instance: Its number, 0-based, in order of construction.
        training: The mode of a module.
        gradients: Whether gradients were enabled.
        tree: Packed: the positional and the named arguments.
        learns: Of the first module among the arguments: the names of the parameters that require gradients.
        rates: Of its parameters, by name: the rate that the first optimizer among the arguments has for them.
    """

    number: int
    instance: int
    training: bool
    gradients: bool
    tree: Node = None
    arrays: Arrays = field(default_factory=dict)
    learns: tuple[str, ...] = ()
    rates: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Axes:
    """One axes of a figure.

    Attributes:
        images, heat_maps: The numbers of arrays `image<k>`.
        row_names, column_names: The tick label beside each row and column of the first image or heat map
            with up to 40 of them, in the order of its array; empty where there is none.
        lines: The numbers of arrays `line<k>`, (2, points): horizontal and vertical coordinates. Scattered
            points are a line, and a span is two, its edges.
        line_names: The label of each line, whether or not a legend shows it; empty if it has none.
        bars: The length of each bar, 0 where it has none: its height if it stands, its width if it lies.
        bar_names: The tick label within the width of each bar; empty if there is none.
        headings: Titles of the subfigures that it is in, and texts of the figure beside or above it.
        text_cells: The row and the column of the cell of that image or heat map in which each text lies, in
            the order of its array; (-1, -1) where it lies in none. Empty where there is no such map.
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
    text_cells: tuple[tuple[int, int], ...] = ()
    lines: tuple[int, ...] = ()
    line_names: tuple[str, ...] = ()
    bars: tuple[float, ...] = ()
    bar_names: tuple[str, ...] = ()
    headings: tuple[str, ...] = ()
    place: tuple[float, float, float, float] = (0.0, 0.0, 1.0, 1.0)


@dataclass(frozen=True)
class DrawnFigure:
    """One figure.

    Attributes:
        pixels: The number of its picture; -1: not drawn. For each pixel, the array `figure<pixels>`, uint8
            (height, width), has the row of its color in `palette<pixels>`, uint8 (colors, 3).
    """

    pixels: int
    title: str = ""
    axes: tuple[Axes, ...] = ()


@dataclass(frozen=True)
class Invoked:
    """Something was called, read or set.

    Attributes:
        value: Packed: what it returned.
        printed: The end of what it wrote to the standard streams.
        args, kwargs: The arguments as they are afterwards, packed, each by itself; `{"same": true}` in place
            of one that did not change.
        gradients: Packed: one for each positional argument, None where there is none.
        attached: Whether a tensor that it returned still belongs to a graph of gradients.
        gradients_after: Whether gradients are computed afterwards, as they were before.
        files: The names of those that were asked for and are there; `file:<name>` among the arrays.
        figures: What was drawn; `drawn:<name>` among the arrays.
        calls: Of a built component that was called: the calls of fakes of known behavior, in order; their
            inputs are the arrays `call0`, `call1`, ...
    """

    value: Node = None
    printed: str = ""
    args: tuple[Node, ...] = ()
    kwargs: dict[str, Node] = field(default_factory=dict)
    gradients: tuple[Node, ...] = ()
    attached: bool = False
    gradients_after: bool = True
    files: tuple[str, ...] = ()
    figures: tuple[DrawnFigure, ...] = ()
    arrays: Arrays = field(default_factory=dict)
    calls: tuple[AffineFakeCall, ...] = ()


@dataclass(frozen=True)
class WeightValues:
    """The parameters and buffers by name, as arrays."""

    arrays: Arrays = field(default_factory=dict)


@dataclass(frozen=True)
class Done:
    """The request was fulfilled; there is nothing to report."""


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
        printed: The end of what it wrote to the standard streams, and of the texts that it returned.
        returned_kind: What it returned, in words.
        history_keeps_graph: The history holds tensors with their graph.
        history_has_tensors: The history holds tensors, with their graph or without.
        steps: Optimizer steps taken.
        events: `zero_grad`, `forward`, `backward`, `step`, `schedule`, in order, the first 4000.
        learned: The numbers of the forward passes through which a gradient came back, in that order, the
            first 4000.
        training_after: The model's mode afterwards.
        gradients_after: Whether gradients were enabled afterwards.
        figures: What was drawn.
        arrays: `returned` and `history` float64 (numbers,): what it returned and what it left in the
            loss_history, flattened; `weights` (k, classes) afterwards; `logit_gradients` (n, classes) of
            the first pass over the data; `step_gradients` (steps, k, classes) as the optimizer used
            them; the figures' arrays.
    """

    printed: str
    returned_kind: str
    history_keeps_graph: bool = False
    history_has_tensors: bool = False
    steps: int = 0
    events: tuple[str, ...] = ()
    learned: tuple[int, ...] = ()
    training_after: bool = False
    gradients_after: bool = True
    figures: tuple[DrawnFigure, ...] = ()
    arrays: Arrays = field(default_factory=dict)


HANDED_OUT_BATCH_SIZE = 64  # where the source has none


@dataclass(frozen=True)
class TrainingPlan:
    """What is about to be trained, before the first epoch.

    Attributes:
        epochs: As the student's code asks for.
        assumed: What the source does not say, so that the handed-out one was used.
    """

    epochs: int
    batch_size: int
    optimizer: str
    scheduler: str
    device: str
    assumed: tuple[Literal["batch_size", "transform", "collate"], ...] = ()


@dataclass(frozen=True)
class EpochDone:
    """One epoch was trained.

    Attributes:
        made: What the model was made with, if the source alone does not say.
        learning_rate: Of the first parameter group of the optimizer that stepped last.
        loop: The number of the loop in the script that holds the steps; -1 if none does.
        called: The top-level line that calls the function with that loop; empty at top level.
        optimizer: The class of the optimizer.
        scheduler: The class of its schedule; empty: there is none.
        learned: How many numbers the optimizers change in the first step.
        per_batch: The learning rate changed between the first step and the last one.
        modules: The tree of the model that the student's code has now.
        other_numbers: Trainable numbers that optimizers stepped in this epoch and that are not the model's.
        steps: How many steps the optimizer with most of them took in this epoch.
        batches: How many batches a pass over the training loader has.
        arrays: `reported` float64 (numbers,): the losses that train_epoch appended or returned during this
            epoch; `state:<name>`: the model's parameters and buffers.
    """

    number: int
    learning_rate: float
    loop: int = -1
    called: str = ""
    optimizer: str = ""
    scheduler: str = ""
    learned: int = 0
    per_batch: bool = False
    modules: tuple[Module, ...] = ()
    other_numbers: int = 0
    steps: int = 0
    batches: int = 0
    made: ModelMade | None = None
    arrays: Arrays = field(default_factory=dict)


@dataclass(frozen=True)
class Stepped:
    """A call that trains a model has returned.

    Attributes:
        steps: The optimizer steps that moved the model.
        batches: How many batches a pass over its longest loader has.
    """

    steps: int
    batches: int


@dataclass(frozen=True)
class Trained:
    """Training is complete.

    Attributes:
        epochs: How many; fewer than planned where the student's loop stops early.
        other_models: How many further models were trained.
        modules: The tree of the model as the student's code leaves it.
        parameters: How many numbers it has as parameters; -1 where that was not asked for.
        multiply_adds: Of one image's forward pass; -1 if that was not asked for, or cannot be counted.
        arrays: `state:<name>`: its parameters and buffers; where it can answer, `probe` float32 (images,
            channels, height, width), some of what the student's code validates on, and `probe_logits` float32
            (images, classes), what the model answers.
        fed_otherwise: In training, the model was fed other images than the student's transform gives.
    """

    epochs: int
    other_models: int = 0
    modules: tuple[Module, ...] = ()
    parameters: int = -1
    multiply_adds: int = -1
    fed_otherwise: bool = False
    arrays: Arrays = field(default_factory=dict)


@dataclass(frozen=True)
class Measurable:
    """The model was built for measuring.

    Attributes:
        modules: Its tree.
    """

    modules: tuple[Module, ...] = ()


@dataclass(frozen=True)
class Misfit:
    """What keeps weights from fitting a model.

    Attributes:
        missing: How many of the model's tensors the weights lack.
        unknown: How many of their tensors the model lacks.
        tensors: How many the model has.
        example: The name of one such tensor: a missing one if there is any. If all names fit: of the first
            tensor whose shape differs.
        shapes: That tensor's shapes in the weights and in the model, if they differ.
        entries: How many entries the numbered list that holds the example has in the weights and in the
            model; () if no numbered list holds it.
    """

    missing: int
    unknown: int
    tensors: int
    example: str
    shapes: tuple[tuple[int, ...], ...] = ()
    entries: tuple[int, ...] = ()


@dataclass(frozen=True)
class Answered:
    """What the model answers with the weights that it was given.

    Attributes:
        misfit: Why the weights are not those of this model; None where they are.
        arrays: `logits` float32 (test images, classes), without the chance in the student's test transform;
            `augmented`, the same with it, where there is some; `probe_logits` float32 (images, classes);
            `seen_logits`, like `logits`, of the images that were sent as `seen`;
            `attention` float32 (images, layers, tokens, tokens), the mean over heads, where it was asked for
            and can be read; `inputs` float32 (images, channels, height, width).
    """

    misfit: Misfit | None = None
    arrays: Arrays = field(default_factory=dict)


CheckpointFault = Literal["", "unreadable", "no_state_dict", "odd_entry", "too_large"]


@dataclass(frozen=True)
class CheckpointLoaded:
    """The checkpoint was tried.

    Attributes:
        status: `fits`, `mismatch`, `whole_model` (pickled) or `refused`.
        fault: Why it was refused.
        misfit: Why it does not fit.
        arrays: `logits` float32 (test images, classes) when it fits.
    """

    status: str
    fault: CheckpointFault = ""
    misfit: Misfit | None = None
    arrays: Arrays = field(default_factory=dict)


@dataclass(frozen=True)
class WatchedPart:
    """A forbidden part that is watched: its dotted name, and the patterns that it falls under."""

    name: str
    patterns: tuple[str, ...]


@dataclass(frozen=True)
class Watching:
    """Further parts are watched. The first notice, perhaps with no parts, comes before the student's code.

    Attributes:
        parts: They are numbered in the order in which they come, from 0.
    """

    parts: tuple[WatchedPart, ...]


@dataclass(frozen=True)
class Reached:
    """A forbidden part is used.

    Attributes:
        part: Its number.
        inside: The part whose own code uses it, or -1.
        file, line: Of the student's line that asked for it; empty and 0 if it is not known.
    """

    part: int
    inside: int
    file: str
    line: int


@dataclass(frozen=True)
class Tried:
    """A forbidden part was used to prove the watch: by `Prove`, or after a request whose seed is `token`."""

    part: int
    token: int


@dataclass(frozen=True)
class Imported:
    """A forbidden module is imported: the number of its pattern in Load."""

    pattern: int
    file: str
    line: int


@dataclass(frozen=True)
class Seen:
    """The student's code reads or changes what is not its own."""

    prying: Prying
    file: str
    line: int


Notice = Watching | Reached | Tried | Imported | Seen  # may come at any time, before the reply to a request

Reply = (
    Raised
    | Loaded
    | Built
    | Called
    | FakeCalled
    | Invoked
    | WeightValues
    | Done
    | ForwardPass
    | Ran
    | TrainingPlan
    | EpochDone
    | Stepped
    | Trained
    | Measurable
    | Answered
    | CheckpointLoaded
)
