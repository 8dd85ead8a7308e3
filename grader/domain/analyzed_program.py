"""The result of analyzing a submission's source: the statements to execute, each with its origin.

Nothing here has been executed. The worker executes `Program.statements`; everything else is for the
checks, for training and for the report. The types hold places in a source, what was left out and why, what
is forbidden, how the model is trained, and the notes that a report shows beside the findings. They do not
analyze a source.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

WITH_DATA = "it needs data, and is executed when the grader trains"  # why the checks do not execute a line


@dataclass(frozen=True)
class Note:
    """A sentence about a submission.

    Attributes:
        ask_person: Whether a person should look at its subject.
    """

    text: str
    ask_person: bool = False

    def __str__(self) -> str:
        return self.text


# --- program ---------------------------------------------------------------------------------------------


# as Jupyter counts: `In [4], cell 9`; cells of text and records of older versions have `cell 9` alone, and
# what a kernel executed is `In [4]` alone
_CELL = re.compile(r"(?:In \[(?P<run>\d{1,9}| )\], )?cell (?P<number>\d{1,9})|In \[(?P<executed>\d{1,9})\]")
_IN_RUN = re.compile(r"In \[(?P<run>\d{1,9}| )\], line (?P<line>\d{1,9}) \(cell (?P<number>\d{1,9})\)")
_IN_CELL = re.compile(r"(?P<file>cell \d{1,9}|In \[\d{1,9}\]), line (?P<line>\d{1,9})")
_FILE = re.compile(r"(?P<file>.+):(?P<line>\d{1,9})")
TRAINING = "the training"  # listed beside graded names: the code that the training depends on
DATA_NAME, NOTHING_NAME, EPOCHS_NAME = "_graders_data", "_nothing", "_epochs"  # in training scripts
LOADING = "the loading"  # the code executed when the file is loaded, whether or not a graded name needs it


@dataclass(frozen=True)
class Place:
    """A line in the student's source.

    Attributes:
        file: `homework.py`, or a cell of a notebook in the format of `cell_name`.
        line: 1-based, within the file or the cell.
    """

    file: str
    line: int

    def __str__(self) -> str:
        cell = _CELL.fullmatch(self.file)
        if cell is None:
            return f"{self.file}:{self.line}"
        if cell["run"] is None:
            return f"{self.file}, line {self.line}"
        return f"In [{cell['run']}], line {self.line} (cell {cell['number']})"


def place_of(where: str) -> Place | None:
    """The place that `where` names (`homework.py:41`, `In [4], line 3 (cell 9)`), if it names a line."""
    if match := _IN_RUN.fullmatch(where):
        return Place(cell_name(int(match["number"]), match["run"]), int(match["line"]))
    match = _IN_CELL.fullmatch(where) or _FILE.fullmatch(where)
    return Place(match["file"], int(match["line"])) if match else None


def cell_name(number: int, run: str = "") -> str:
    """The name of a notebook's cell in `Place.file`: `In [4], cell 9`; without `run`, `cell 9`.

    Args:
        number: 1-based, counting all cells.
        run: The text that Jupyter shows in the brackets beside it.
    """
    return f"In [{run}], cell {number}" if run else f"cell {number}"


def executed_name(run: int) -> str:
    """The name, in `Place.file`, of code that a kernel executed: `In [4]`, without a place in a file."""
    return f"In [{run}]"


def cell_number(file: str) -> int | None:
    """The number, among all cells, of the cell that `Place.file` names; None if it is a file."""
    cell = _CELL.fullmatch(file)
    return int(cell["number"] or cell["executed"]) if cell else None


def cell_run(file: str) -> int | None:
    """The execution count of the cell that `Place.file` names; None if it has none."""
    cell = _CELL.fullmatch(file)
    return int(cell["run"]) if cell and cell["run"] and cell["run"].strip() else None


def lines_of(text: str) -> list[str]:
    """The lines of a source, as places number them."""
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def line_at(source: Mapping[str, str] | None, place: Place) -> str | None:
    """The line at a place, without surrounding space; None if the source has no such line.

    Args:
        source: File or cell -> text.
    """
    lines = lines_of((source or {}).get(place.file, ""))
    return lines[place.line - 1].strip() if 1 <= place.line <= len(lines) else None


@dataclass(frozen=True)
class Statement:
    """One top-level statement that the worker executes, in the order of the source.

    Attributes:
        source: The statement's text, dedented, decorators included: every token on its own line, without
            comments, and with docstrings cut.
        place: Where its first line is.
        binds: The names that it binds at top level.
        kind: `import`, `definition` (class or function), `constant`, or `needed` (kept because a graded
            name depends on it).
    """

    source: str
    place: Place
    binds: tuple[str, ...]
    kind: str


@dataclass(frozen=True)
class Omission:
    """A top-level statement that was left out on loading, and why.

    Attributes:
        broken: Whether it is a whole cell that is not correct Python.
        binds: The names that it would bind.
    """

    place: Place
    first_line: str
    reason: str
    broken: bool = False
    binds: tuple[str, ...] = ()


@dataclass(frozen=True)
class NearName:
    """A graded name that is missing, and a defined name that is nearly it (`VIT` for `ViT`).

    The program binds `expected` to the value of `found`, so that it is graded anyway.
    """

    expected: str
    found: str
    place: Place


@dataclass(frozen=True)
class ForbiddenUse:
    """A use of something that the assignment forbids, seen in the source or at run time.

    Attributes:
        rule: The pattern of `assignment.toml` that it matches, e.g. `torchvision.models.vit*`.
        name: The dotted name after aliases are resolved.
        reached_from: Graded names (`Attention`, ...) from which it can be reached, or TRAINING alone; empty:
            only imported, or used elsewhere, which costs nothing.
        inside: Another forbidden part, whose own code used it; empty if the student's did.
    """

    rule: str
    name: str
    place: Place
    reached_from: tuple[str, ...]
    inside: str = ""

    @property
    def in_training(self) -> bool:
        """Whether the training reaches it, and no graded name does."""
        return self.reached_from == (TRAINING,)


@dataclass(frozen=True)
class Span:
    """A piece of the student's source: lines 1-based, columns 0-based in UTF-8 bytes, the end exclusive.

    Attributes:
        file: As in `Place`.
    """

    file: str
    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(frozen=True)
class TunedValue:
    """A value that the student chose, read from the source.

    Attributes:
        name: The field's usual name: `dim`, `depth`, `learning_rate`, `batch_size`, `epochs`,
            `optimizer`, `scheduler`, `transform`, ...
        value: As written in the source, or the literal's `repr`: `64`, `AdamW`, `28 x 28`.
        written: Where the number itself is written, possibly in a constant; None if it is computed.
    """

    name: str
    value: str
    place: Place
    written: Span | None = None

    @property
    def shortened(self) -> "TunedValue":
        """The value, cut to the length of a number."""
        return TunedValue(self.name, self.value[:20], self.place)


@dataclass(frozen=True)
class Claim:
    """The test accuracy that the student reports.

    Attributes:
        accuracy: 0 to 1.
        source: Where it was found: `In [7], cell 12`, `report.pdf, page 3`, or who typed it.
        text: The line that states it.
        cell: The cell whose output contains it, as `Place.file` names it; otherwise empty.
    """

    accuracy: float
    source: str
    text: str = ""
    cell: str = ""


@dataclass(frozen=True)
class Loop:
    """A loop over epochs.

    Attributes:
        place: Where it begins.
        last_line: Of its body, in the same file or cell.
    """

    place: Place
    last_line: int

    def holds(self, place: Place) -> bool:
        """Whether a line is in it."""
        return place.file == self.place.file and self.place.line <= place.line <= self.last_line


@dataclass(frozen=True)
class Script:
    """The code that trains the model that counts, in the order of the source.

    The statements are the student's, except that `DATA_NAME` replaces their data, `NOTHING_NAME` replaces
    what reaches outside, and `EPOCHS_NAME` is put around loops over epochs.

    Attributes:
        statements: All that its weights depend on, including functions in which something was replaced.
        final: The expression for the model, after the last statement; empty: what the script saves counts,
            else the model that was stepped last.
        saved_as: What the name of the file contains in which the model that counts is saved; empty: any file.
        model: The variable of the model, if there is one.
        model_class: Its graded class, by the defined name.
        trainer: The graded function that trains for an epoch, by the defined name; empty: there is none.
        data: Top-level names of data -> role.
        why: Why this model counts, as a clause.
        left_alone: Statements that train other models.
        loops: The loops over epochs, in the order of the source.
        seeds: Where it seeds random numbers.
        single: Whether only one model is built in it.
        validates: Whether measurements between epochs decide something: which weights are kept, when it
            stops, the learning rate, or which of several settings are chosen.
        deciding: The number of statements after which no measurement decides anything any more.
        may_stop: Whether it may end before all its epochs are done.
        missing: Why there is no script, as a clause.
    """

    statements: tuple[Statement, ...] = ()
    final: str = ""
    saved_as: str = ""
    model: str = ""
    model_class: str = ""
    trainer: str = ""
    data: dict[str, str] = field(default_factory=dict)
    why: str = ""
    left_alone: tuple[Omission, ...] = ()
    loops: tuple[Loop, ...] = ()
    seeds: tuple[Place, ...] = ()
    single: bool = False
    validates: bool = False
    deciding: int = 0
    may_stop: bool = False
    missing: str = ""


@dataclass(frozen=True)
class Loading:
    """How a source makes its loaders at top level.

    The statements are executed on folders without files, and what they bind is given up
    (`grader.worker.made_loaders`).

    Attributes:
        statements: What the loaders depend on, in order.
        loaders: The names of loaders, and of collections of them: first those that are trained with.
        before: How many of the statements come before the last training.
    """

    statements: tuple[Statement, ...] = ()
    loaders: tuple[str, ...] = ()
    before: int = 0


@dataclass(frozen=True)
class Recipe:
    """How the student builds the model and prepares the data.

    Each expression is evaluated in the student's module after `statements`, which are the further
    top-level statements that the expressions depend on (configuration, device), in order. An expression that
    the source does not have is None.

    Attributes:
        after_data: Further statements that need the data's names (`train_loader`, `class_names`: see
            `Program.roles`), such as `num_classes = len(class_names)`; executed before `model`.
        model: e.g. `ViT(image_size=28, ...)`, without `.to(device)`.
        model_name: The variable that the student binds it to (`model`), which the others refer to.
        train_transform: The transform of the training images.
        test_transform: The transform of the test images (often the same expression).
        batch_size: Of the training loader.
        collate: The function with which only the training loader makes batches: it may augment.
        loading: How the loaders of top level are made: it counts before `train_transform`, `test_transform`
            and `batch_size`, which are read from the source.
        lacks_transform: The source has a transform that cannot be evaluated by itself, as one that normalizes
            by what was measured on the data; another one takes its place.
    """

    statements: tuple[Statement, ...] = ()
    model: str | None = None
    model_name: str = "model"
    train_transform: str | None = None
    test_transform: str | None = None
    batch_size: str | None = None
    collate: str | None = None
    after_data: tuple[Statement, ...] = ()
    loading: Loading = Loading()
    lacks_transform: bool = False

    @property
    def all_statements(self) -> tuple[Statement, ...]:
        """The statements of all phases, in the order in which they are executed."""
        return (*self.statements, *self.after_data)

    @property
    def expressions(self) -> tuple[str, ...]:
        """The expressions that the source has."""
        expressions = (self.model, self.train_transform, self.test_transform, self.batch_size, self.collate)
        return tuple(expression for expression in expressions if expression is not None)


@dataclass(frozen=True)
class Program:
    """A submission's source, reduced to what may be executed.

    Attributes:
        file: The submitted file's name, for messages.
        statements: The statements that the worker executes on loading, in source order.
        defined: Where each graded name (`Attention`, `train_epoch`, ...) is defined.
        near_names: Graded names found under a slightly different name.
        omissions: Top-level statements left out.
        unresolved: Free names of graded functions that nothing in the source defines, as
            (graded name, free name).
        roles: Free names of graded functions that are bound by role when they are called:
            name -> `model`, `optimizer`, `scheduler`, `train_loader`, `test_loader`,
            `train_dataset`, `test_dataset`, `class_names`, `num_classes`, `loss_history`, `epoch`; with the
            names of data that the recipe uses.
        forbidden: Forbidden parts seen in the source.
        tuned: The values that the student chose.
        recipe: How the student builds the model and prepares the data.
        script: The code that trains the model that counts.
        claim: The accuracy that a notebook's outputs show.
        shown_epochs: The last epoch that a notebook's outputs show.
        notes: For the report (magics set aside, `Resize(28, 28)` read as `(28, 28)`, ...).
        source: The whole readable source with line numbers kept, for the report's excerpts:
            file (or cell) -> text.
        modules: The keys of `source` that are modules of the student's own, which the others import.
        further: The measure's id -> how the same source, which is kept once, is read for a further model.
    """

    file: str
    statements: tuple[Statement, ...] = ()
    defined: dict[str, Place] | None = None
    near_names: tuple[NearName, ...] = ()
    omissions: tuple[Omission, ...] = ()
    unresolved: tuple[tuple[str, str], ...] = ()
    roles: dict[str, str] | None = None
    forbidden: tuple[ForbiddenUse, ...] = ()
    tuned: tuple[TunedValue, ...] = ()
    recipe: Recipe = Recipe()
    script: Script = Script()
    claim: Claim | None = None
    shown_epochs: int | None = None
    notes: tuple[Note, ...] = ()
    source: dict[str, str] | None = None
    modules: tuple[str, ...] = ()
    further: dict[str, "Program"] = field(default_factory=dict)

    def read_for(self, measure: str) -> "Program":
        """The program as it is read for one of the models that are trained."""
        if measure not in self.further:
            return self
        return replace(self.further[measure], source=self.source)

    def unexecuted(self, name: str) -> tuple[Place, str] | None:
        """Where a line would bind a name, and why the checks do not execute it; None: no line does."""
        later = (*self.script.statements, *self.recipe.all_statements)
        places = [
            *((omission.place, omission.reason) for omission in self.omissions if name in omission.binds),
            *((statement.place, WITH_DATA) for statement in later if name in statement.binds),
        ]
        return places[0] if places else None

    @property
    def executed_texts(self) -> tuple[str, ...]:
        """The texts of all code that a worker may execute."""
        recipe = self.recipe
        statements = (
            *self.statements,
            *recipe.all_statements,
            *recipe.loading.statements,
            *self.script.statements,
        )
        return (*(statement.source for statement in statements), *recipe.expressions)

    @property
    def executable(self) -> "Program":
        """The part that a worker needs: what it executes, and the size of the model's images.

        The program could read whatever else the source holds there (comments, answers to questions,
        statements that are left out), and must not need to.
        """
        return Program(
            file=self.file,
            statements=self.statements,
            defined=self.defined,
            near_names=self.near_names,
            roles=self.roles,
            tuned=tuple(value.shortened for value in self.tuned if value.name in ("image_size", "channels")),
            recipe=self.recipe,
            script=self.script,
        )
