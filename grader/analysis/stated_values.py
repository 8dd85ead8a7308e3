"""Values that a submission states, for people to read: chosen hyperparameters and claimed results.

Hyperparameters are read off the source, each with its place. Claims (test accuracy, epochs) are numbers
near such words in outputs and reports, in English and Persian, shown with their line. This may err both
ways and decides no points: `grader.scoring.measurements` may leave them to a person because of a claim. The
training does not depend on it, but without a transform in the source `grader.worker.training_setup` takes
the image size from here.

Tests: tests/analysis/test_claims.py, tests/analysis/test_recipe.py, tests/training/test_replay.py
"""

import ast
import contextlib
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from grader.analysis.constant_values import Unknown, called_name, value
from grader.analysis.flow import Flow
from grader.analysis.recognized_roles import unwrapped
from grader.analysis.syntax_trees import statements_within, text_of, walk
from grader.analysis.training_recipe import Ingredients
from grader.analysis.units import Unit
from grader.domain.analyzed_program import Claim, Place, Span, TunedValue

SHOWN_OF_A_CLAIM = 160
MOST_TEXT = 400_000  # characters of one cell or page, from its end

# the word before `accuracy` says what was measured; Persian reports write دقت
_WORD = r"(?:accuracy|acc\b|acc\.|دقت)"
_NUMBER = r"(?P<number>\d{1,3}(?:\.\d+)?)\s*(?P<percent>%|٪|percent|درصد)?"
_AFTER = re.compile(
    rf"(?P<label>[^\W\d_]*)[\s_-]*{_WORD}(?P<between>[^\d%]{{0,40}})(?:\d+\s*/\s*\d+\s*\(\s*)?{_NUMBER}",
    re.IGNORECASE,
)
_BEFORE = re.compile(
    rf"{_NUMBER}\s*(?:\w+\s+){{0,2}}?(?P<label>[^\W\d_]*)[\s_-]*{_WORD}(?P<between>)", re.IGNORECASE
)
_NOT_A_RESULT = re.compile(
    r"at least|thresh|requir|must|minimum|target|goal|should|need|chance|random|baseline|\bcnn|resnet|"
    r"≥|>=|حداقل",
    re.IGNORECASE,
)
_TRAIN = re.compile(r"\btrain", re.IGNORECASE)
_FINAL = re.compile(r"\bfinal|\boverall|نهایی", re.IGNORECASE)
_TEST = re.compile(r"\btest|\beval|تست|آزمون", re.IGNORECASE)
_EPOCH = re.compile(r"\bepochs?\b\W{0,3}(?P<number>\d{1,4})\b(?!\s*s\b)", re.IGNORECASE)
_SENTENCE = re.compile(r"(?<=[.!?؟])\s+(?=\D)|\n\s*\n")


@dataclass(frozen=True)
class _StatedAccuracy:
    rank: int
    accuracy: float
    text: str


def claim_in_outputs(outputs: Iterable[tuple[str, str]]) -> Claim | None:
    """The accuracy that a notebook's outputs end with.

    Args:
        outputs: (cell, what it printed), in order.
    """
    best = _best((place, line) for place, text in outputs for line in _clean(text).splitlines())
    return None if best is None else replace(best, cell=best.source)


def claim_in_report(name: str, pages: Iterable[str]) -> Claim | None:
    """The accuracy that a report names as its result.

    Args:
        name: The report's file name.
        pages: The text of each page.
    """
    return _best(
        (f"{name}, page {number}", " ".join(sentence.split()))
        for number, page in enumerate(pages, start=1)
        for sentence in _SENTENCE.split(_clean(page))
    )


def epochs_in_outputs(outputs: Iterable[tuple[str, str]]) -> int | None:
    """The highest number of an epoch that a notebook's outputs show; None if they show none."""
    numbers = [int(match["number"]) for _, text in outputs for match in _EPOCH.finditer(_clean(text))]
    return max(numbers, default=None)


def _best(lines: Iterable[tuple[str, str]]) -> Claim | None:
    """The accuracy that is most clearly the result on the test images; of several, the last."""
    best: tuple[int, Claim] | None = None
    for place, line in lines:
        for stated in _accuracies(line):
            if best is None or stated.rank >= best[0]:
                best = stated.rank, Claim(stated.accuracy, place, stated.text)
    return best[1] if best else None


def _accuracies(line: str) -> Iterator[_StatedAccuracy]:
    """The accuracies that a line or sentence names, except those on training images."""
    if _NOT_A_RESULT.search(line):
        return
    for pattern in (_AFTER, _BEFORE):
        matches = list(pattern.finditer(line))
        for match in matches:
            accuracy = _share(match["number"], match["percent"])
            label = match["label"]
            if accuracy is None or _TRAIN.match(label) or _TRAIN.search(match["between"]):
                continue
            rank = 2 * bool(_TEST.search(label) or _TEST.search(line)) + bool(_FINAL.search(line))
            yield _StatedAccuracy(rank, accuracy, _excerpt(line, match.start()))
        if matches:
            return


def _share(number: str, percent: str | None) -> float | None:
    """A number as a share of one: `83.5 %` and `0.835`; a bare `83.52` counts as percent."""
    value = float(number)
    if percent or (value > 1 and "." in number):
        value /= 100
    elif value > 1 or ("." not in number and value == 0):
        return None
    return value if 0 < value <= 1 else None


def _clean(text: str) -> str:
    """The end of a text, with plain digits, and with only the final state of progress bars."""
    text = unicodedata.normalize("NFKC", text[-MOST_TEXT:]).replace(
        "\u066b", "."
    )  # the decimal sign in Persian
    digits = "".join(str(unicodedata.digit(c, c)) if c.isdigit() else c for c in text)
    return "\n".join(line.rstrip("\r").rsplit("\r", 1)[-1] for line in digits.split("\n"))


def _excerpt(line: str, start: int) -> str:
    begin = max(start - SHOWN_OF_A_CLAIM // 3, 0)
    return ("..." if begin else "") + line[begin : begin + SHOWN_OF_A_CLAIM].strip()


# --- tuned -----------------------------------------------------------------------------------------------


OPTIMIZER_FIELDS = {"lr": "learning_rate"}
LEARNING_RATE_POSITION = 1
MOST_OF_SOURCE = 60
DEPTH = 8


class Values:
    """Values of expressions at a point of the program, through constants, dictionaries and configurations."""

    def __init__(self, flow: Flow, classes: Mapping[str, ast.ClassDef]) -> None:
        """Take what was executed before, and the program's classes by name."""
        self._flow = flow
        self._classes = classes
        self._depth = 0

    def shown(self, node: ast.expr) -> str:
        """The value as `repr` gives it, or the source if the value is not known."""
        with contextlib.suppress(Unknown):
            known_value = value(node, self.known)
            return known_value if isinstance(known_value, str) else repr(known_value)
        return _source(node)

    def known(self, node: ast.expr) -> Any:
        """The value of a name or an attribute.

        Raises:
            Unknown: It cannot be read off the source.
        """
        if self._depth >= DEPTH:
            raise Unknown
        self._depth += 1
        try:
            if isinstance(node, ast.Name):
                bound = self._flow.last(node.id)
                if bound is None:
                    raise Unknown
                return value(bound, self.known)
            if isinstance(node, ast.Attribute):
                return self._field(node.value, node.attr)
            raise Unknown
        finally:
            self._depth -= 1

    def literal(self, node: ast.expr) -> ast.Constant | None:
        """Where the number that an expression gives is written: there, or in the constant that it names."""
        for _ in range(DEPTH):
            if isinstance(node, ast.Constant):
                return node if type(node.value) in (int, float) else None
            bound = self._flow.last(node.id) if isinstance(node, ast.Name) else None
            if bound is None:
                return None
            node = bound
        return None

    def _field(self, owner: ast.expr, name: str) -> Any:
        """The value of `config.dim`, for a class, an object, a namespace, or the parsed command line."""
        expression = owner
        if isinstance(owner, ast.Name) and owner.id not in self._classes:
            expression = self._flow.last(owner.id) or owner
        if isinstance(expression, ast.Call):
            for keyword in expression.keywords:
                if keyword.arg == name:
                    return value(keyword.value, self.known)
            if isinstance(expression.func, ast.Attribute) and expression.func.attr.startswith("parse_"):
                return self._option(name)
            expression = expression.func
        if isinstance(expression, ast.Name) and expression.id in self._classes:
            for statement in self._classes[expression.id].body:
                target, bound = _class_field(statement)
                if target == name and bound is not None:
                    return value(bound, self.known)
        raise Unknown

    def _option(self, name: str) -> Any:
        """The default of an option of argparse."""
        for step in self._flow.steps:
            for node in statements_within(step.node):
                call = node.value if isinstance(node, ast.Expr) else None
                if not isinstance(call, ast.Call) or not text_of(call.func).endswith(".add_argument"):
                    continue
                flags = [
                    a.value for a in call.args if isinstance(a, ast.Constant) and isinstance(a.value, str)
                ]
                if name in (flag.lstrip("-").replace("-", "_") for flag in flags):
                    for keyword in call.keywords:
                        if keyword.arg == "default":
                            return value(keyword.value, self.known)
        raise Unknown

    def keywords(self, call: ast.Call) -> Iterator[tuple[str, ast.expr | None, Any]]:
        """(name, node, value) for every argument by name, including those of `**config`."""
        for keyword in call.keywords:
            if keyword.arg is not None:
                yield keyword.arg, keyword.value, None
                continue
            with contextlib.suppress(Unknown):
                options = value(keyword.value, self.known)
                if isinstance(options, dict):
                    yield from ((str(name), None, part) for name, part in options.items())


def _class_field(node: ast.stmt) -> tuple[str, ast.expr | None]:
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return node.target.id, node.value
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id, node.value
    return "", None


def tuned(
    parts: Ingredients, units: Sequence[Unit], makers: Mapping[str, ast.FunctionDef]
) -> tuple[TunedValue, ...]:
    """The values that the student chose, each with its place.

    Args:
        parts: The parts of the recipe.
        units: The program.
        makers: Functions by name; one that returns the model is looked into.
    """
    reader = _Reader(parts, units)
    values = [*reader.model(makers), *reader.optimizer(), *reader.schedule(), *reader.data()]
    unique: dict[str, TunedValue] = {}
    for item in values:
        unique.setdefault(item.name, item)
    return tuple(unique.values())


class _Reader:
    """Reads the values of one program."""

    def __init__(self, parts: Ingredients, units: Sequence[Unit]) -> None:
        self._parts = parts
        self._units = units
        self._classes = {unit.node.name: unit.node for unit in units if isinstance(unit.node, ast.ClassDef)}
        self._home: dict[int, Unit] | None = None

    def _place(self, node: ast.expr) -> Place:
        """The place of an expression."""
        return self._unit(node).cell.place(node.lineno)

    def _unit(self, node: ast.expr) -> Unit:
        """The statement that an expression is part of: nodes keep their line but not their cell."""
        if self._home is None:
            self._home = {id(inner): unit for unit in self._units for inner in _expressions(unit.node)}
        unit = self._home.get(id(node))
        if unit is None:
            step = next((s for s in self._parts.flow.steps if node in walk(s.node)), None)
            unit = step or self._units[0]
        return unit

    def _value(self, name: str, node: ast.expr, values: Values) -> TunedValue:
        return TunedValue(
            name, values.shown(node)[:MOST_OF_SOURCE], self._place(node), self._written(node, values)
        )

    def _written(self, node: ast.expr, values: Values) -> Span | None:
        literal = values.literal(node)
        if literal is None or literal.end_lineno is None or literal.end_col_offset is None:
            return None
        file = self._unit(literal).cell.file
        return Span(file, literal.lineno, literal.col_offset, literal.end_lineno, literal.end_col_offset)

    def model(self, makers: Mapping[str, ast.FunctionDef]) -> Iterator[TunedValue]:
        """Every argument of the model."""
        if self._parts.model is None:
            return
        _, node, flow = self._parts.model
        call = unwrapped(node)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in makers:
            inner = _returned_call(makers[call.func.id], set(self._classes))
            call = inner if inner is not None else call
        if not isinstance(call, ast.Call):
            return
        values = Values(flow, self._classes)
        for name, argument, unpacked in values.keywords(call):
            if argument is not None:
                yield self._value(name, argument, values)
            else:
                text = unpacked if isinstance(unpacked, str) else repr(unpacked)
                yield TunedValue(name, text[:MOST_OF_SOURCE], self._place(call))

    def optimizer(self) -> Iterator[TunedValue]:
        """Its name and its arguments."""
        if self._parts.optimizer is None:
            return
        _, node, flow = self._parts.optimizer
        if not isinstance(node, ast.Call):
            return
        values = Values(flow, self._classes)
        if isinstance(node.func, ast.Name | ast.Attribute):  # `OPTIMIZERS["sgd"](...)` names no class
            yield TunedValue("optimizer", called_name(node.func), self._place(node))
        if len(node.args) > LEARNING_RATE_POSITION:
            yield self._value("learning_rate", node.args[LEARNING_RATE_POSITION], values)
        for name, argument, unpacked in values.keywords(node):
            name = OPTIMIZER_FIELDS.get(name, name)
            if argument is not None:
                yield self._value(name, argument, values)
            else:
                yield TunedValue(name, repr(unpacked)[:MOST_OF_SOURCE], self._place(node))

    def schedule(self) -> Iterator[TunedValue]:
        """The schedule and the number of epochs."""
        if self._parts.scheduler is not None:
            _, node, _ = self._parts.scheduler
            yield TunedValue("scheduler", _source(node), self._place(node))
        if self._parts.epochs is not None:
            values = Values(self._parts.flow, self._classes)
            node = self._parts.epochs
            place = (
                self._parts.loop.unit.cell.place(self._parts.loop.node.lineno) if self._parts.loop else None
            )
            written = self._written(node, values)
            yield TunedValue(
                "epochs", values.shown(node)[:MOST_OF_SOURCE], place or self._place(node), written
            )

    def data(self) -> Iterator[TunedValue]:
        """Batch size, transforms and label smoothing."""
        size = self._parts.batch_size
        if size is not None:
            yield self._value("batch_size", size.node, Values(size.flow, self._classes))
        train, test = self._parts.train_transform, self._parts.test_transform
        if train is not None:
            text = _steps(train.node, train.flow)
            yield TunedValue("transform", text, train.unit.cell.place(train.node.lineno))
            if test is not None and _steps(test.node, test.flow) != text:
                shown = _steps(test.node, test.flow)
                yield TunedValue("test_transform", shown, test.unit.cell.place(test.node.lineno))
        for unit in self._units:
            for node in walk(unit.node):
                if isinstance(node, ast.keyword) and node.arg == "label_smoothing":
                    shown = Values(self._parts.flow, self._classes).shown(node.value)
                    if shown not in ("0", "0.0"):
                        yield TunedValue(
                            "label_smoothing", shown[:MOST_OF_SOURCE], unit.cell.place(node.value.lineno)
                        )


def _returned_call(function: ast.FunctionDef, classes: set[str]) -> ast.Call | None:
    """The call of a class in a function that returns a model."""
    for node in walk(function):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in classes
            and node.keywords
        ):
            return node
    return None


def _expressions(node: ast.AST) -> Iterator[ast.AST]:
    return (inner for inner in walk(node) if isinstance(inner, ast.expr))


def _steps(node: ast.expr, flow: Flow) -> str:
    """A transform as the list of its steps: `Resize((28, 28)), Grayscale(), ToTensor()`."""
    if isinstance(node, ast.Name):
        node = flow.last(node.id) or node
    if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.List | ast.Tuple):
        parts = [ast.unparse(_bare(part)) for part in node.args[0].elts]
        return ", ".join(parts)[:400]
    return ast.unparse(node)[:400]


def _bare(node: ast.expr) -> ast.expr:
    """`transforms.Resize(28)` as `Resize(28)`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return ast.Call(ast.Name(node.func.attr, ast.Load()), node.args, node.keywords)
    return node


def _source(node: ast.expr) -> str:
    text = ast.unparse(_bare(node))
    return text if len(text) <= MOST_OF_SOURCE else text[: MOST_OF_SOURCE - 3] + "..."
