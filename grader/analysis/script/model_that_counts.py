"""The model that counts, if a program trains several, and whether its class is built exactly once.

The order is: the remark `# grader: final`, the assignment's variable, weights saved under the checkpoint's
name. Else it is the model whose predictions a graded function plots last, the only one saved, or the one
trained last. The remark overrules this heuristic, no person is asked, and the reason is shown. Whether a
class is built once is decided by its calls, and errs toward several: then `grader.worker.script_run` reports
the epochs at the end. `grader.training`, never this module, measures what the model is worth.

Tests: tests/analysis/script/test_which_model_counts.py, tests/analysis/test_recipe.py,
tests/benchmarks/test_script_alone.py, tests/courses/test_two_models.py
"""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from grader.analysis.effects import Aliases
from grader.analysis.script.definitions import Definitions
from grader.analysis.script.dependence import Level
from grader.analysis.script.partial_text import UNKNOWN_PART, PartialText, bound_once, in_callers_terms
from grader.analysis.slicing import LOOPS
from grader.analysis.syntax_trees import (
    COMPREHENSIONS,
    all_parameters,
    calls,
    statements_within,
    text_of,
    walk,
)
from grader.analysis.units import Unit

MANY = 2
REPEATING = (*LOOPS, *COMPREHENSIONS, ast.Lambda)


def is_built_once(kind: str, executed: Iterable[ast.stmt], definitions: Mapping[str, ast.stmt]) -> bool:
    """Whether exactly one model is built, as far as the source shows.

    Args:
        kind: The class.
        executed: The top-level statements that are executed.
        definitions: The functions and classes that they use, by name.
    """
    all_nodes = [*executed, *definitions.values()]
    copied = any(_copies(call) for node in all_nodes for call in walk(node) if isinstance(call, ast.Call))
    return not copied and _Calls(list(executed), definitions).times(kind, frozenset()) == 1


def _copies(call: ast.Call) -> bool:
    """Whether a call may copy a model, which can then be trained by itself, unlike a copy of its weights."""
    name = text_of(call.func).split(".")[-1]
    return name == "deepcopy" and not any(
        isinstance(argument, ast.Call) and text_of(argument.func).endswith("state_dict")
        for argument in call.args
    )


class _Calls:
    """Counts calls, up to `MANY`."""

    def __init__(self, executed: list[ast.stmt], definitions: Mapping[str, ast.stmt]) -> None:
        self._executed = executed
        self._definitions = {name: node for name, node in definitions.items() if node not in executed}

    def times(self, name: str, within: frozenset[str]) -> int:
        """How often something is called by its name; if it is handed on as a value, it counts as `MANY`."""
        if name in within:
            return MANY
        count = sum(weight for node in self._executed for weight in _uses(node, name))
        for other, body in self._definitions.items():
            uses = sum(_uses(body, name)) if other != name else 0
            if uses:
                count += uses * self.times(other, within | {name})
        return min(count, MANY)


def _uses(node: ast.AST, name: str, weight: int = 1) -> Iterator[int]:
    """The weight of each use of a name: 1 for a call that is made once when the node is executed."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name:
        yield weight
        children: Iterable[ast.AST] = [*node.args, *node.keywords]
    elif isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
        yield MANY
        children = ()
    else:
        children = _evaluated(node)
    inner = MANY if isinstance(node, REPEATING) else weight
    for child in children:
        # a method may be called any number of times, but an object is initialized once
        is_method = isinstance(node, ast.ClassDef) and isinstance(child, ast.FunctionDef)
        many = is_method and child.name != "__init__"  # type: ignore[attr-defined]
        yield from _uses(child, name, MANY if many else inner)


def _evaluated(node: ast.AST) -> Iterator[ast.AST]:
    """The children of a node, except annotations and type checks, which call nothing."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
        yield node.args[0] if node.args else node.func
        return
    for name, child in ast.iter_fields(node):
        items = child if isinstance(child, list) else [child]
        if name not in ("annotation", "returns"):
            yield from (item for item in items if isinstance(item, ast.AST))


# --- model that counts -----------------------------------------------------------------------------------


MOST_DEEP = 4
REMARK = re.compile(r"#\s*grader:\s*final\b", re.IGNORECASE)


@dataclass(frozen=True)
class Saved:
    """A statement that saves a model or its weights.

    Attributes:
        position: The statement's position at its level.
        names: Those of the saved names that hold what is trained.
        name: The file's name as far as the source shows it, with UNKNOWN_PART for the rest.
        within: It is saved in a function that the statement calls, or in a block.
    """

    position: int
    names: frozenset[str]
    name: str
    within: bool


@dataclass(frozen=True)
class Choice:
    """The model that counts.

    Attributes:
        position: Its weights are final after this statement of the level; None: after the last.
        names: The names that hold it or its weights.
        is_saved: What counts is what that statement saves.
        model: The variable of the model, if there is a single one.
        why: The clause that says why this model counts.
    """

    position: int | None
    names: frozenset[str]
    is_saved: bool
    model: str | None
    why: str


class ModelThatCounts:
    """Looks for the model that counts at the levels of a program."""

    def __init__(
        self,
        aliases: Aliases,
        definitions: Definitions,
        expressions: Mapping[str, ast.expr],
        checkpoint: str,
        file_stem: str,
        final: str,
    ) -> None:
        """Take what is known about the program.

        Args:
            expressions: What names of the top level stand for.
            checkpoint: What the name of the checkpoint's file contains: `_Lab8_Homework`, `_vit`.
            file_stem: What the names of all files that are handed in contain.
            final: The variable that the assignment names.
        """
        self._aliases = aliases
        self._definitions = definitions
        self._expressions = expressions
        self._checkpoint = checkpoint.lower()
        self._file_stem = file_stem.lower()
        self._stated = final

    def chosen(self, level: Level) -> Choice | None:
        """The model that counts at a level, if one is trained there."""
        for position, unit in enumerate(level.units):
            if _is_remarked(unit) and (names := _trained(unit.binds | unit.eager, level, position)):
                is_trained = level.slice(names, position + 1)[0] & level.trains
                final_from = position if is_trained else None  # it is made there, and trained later
                return self._choice(level, final_from, names, "the remark `# grader: final` stands there")
        if self._stated in level.trained:
            return self._choice(level, None, frozenset({self._stated}), "the assignment names it")
        saved = list(self.saved(level))
        under_checkpoint_name = [candidate for candidate in saved if self._is_checkpoint(candidate.name)]
        if under_checkpoint_name:
            last_saved = under_checkpoint_name[-1]
            return Choice(
                last_saved.position,
                last_saved.names,
                True,
                _single(last_saved.names),
                "its weights are saved",
            )
        return self._shown(level) or self._only_saved(saved) or self._trained_last(level)

    def _choice(self, level: Level, position: int | None, names: frozenset[str], why: str) -> Choice:
        return Choice(position, names, False, _single(names), why)

    def _is_checkpoint(self, name: str) -> bool:
        """Whether a file's name contains the checkpoint's, or may do so: of `f"{ID}_CIFAR10_{name}.pth"`."""
        if name.strip(UNKNOWN_PART) == "" or not self._checkpoint:
            return False
        parts = [part for part in name.lower().split(UNKNOWN_PART) if part]
        if any(self._checkpoint in part for part in parts):
            return True
        _, *after = name.lower().split(self._file_stem) if self._file_stem else [name]
        return any(UNKNOWN_PART in part for part in after)

    def _shown(self, level: Level) -> Choice | None:
        """The model given to the last call of a graded plotting function: what the student shows."""
        for position, plotted_names in reversed(level.plotted):
            if names := _trained(plotted_names, level, position):
                return Choice(position, names, False, _single(names), "its predictions are drawn")
        return None

    def _only_saved(self, saved: Sequence[Saved]) -> Choice | None:
        """The model that is saved, if only one is."""
        if saved and len({candidate.names for candidate in saved}) == 1:
            last_saved = saved[-1]
            return Choice(
                None, last_saved.names, False, _single(last_saved.names), "only its weights are saved"
            )
        return None

    def _trained_last(self, level: Level) -> Choice | None:
        """The model of the last statement that trains."""
        for position in sorted(level.trains, reverse=True):
            before = {name for unit in level.units[:position] for name in unit.binds}
            changed = level.changes(level.units[position])
            names = (
                _trained(changed & before, level, position)
                or _trained(changed, level, position)
                or _trained(level.units[position].binds, level, position)
            )
            if names:
                return Choice(None, names, False, _single(names), "it is trained last")
        return None

    def saved(self, level: Level) -> Iterator[Saved]:
        """What is saved at a level, in order, directly or through calls."""
        texts = self._texts(level)
        for position, unit in enumerate(level.units):
            if unit.is_definition or unit.is_import:
                continue
            for node in statements_within(unit.node):
                for call in calls(node):
                    for expression, place, within in self._saves(call, MOST_DEEP):
                        used_names = {n.id for n in walk(expression) if isinstance(n, ast.Name)}
                        names = _trained(used_names, level, position) or _trained(
                            unit.references.names(eager=True), level, position
                        )
                        if names:
                            name = self._name(place, texts)
                            yield Saved(position, names, name, within or node is not unit.node)

    def _saves(self, call: ast.Call, depth: int) -> Iterator[tuple[ast.expr, ast.expr | None, bool]]:
        """(what is saved, where, whether within a function) for a call, or for what it calls."""
        if "torch.save" in self._aliases.names_of(call.func):
            given = dict(zip(("obj", "f"), call.args, strict=False))
            given |= {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
            if "obj" in given:
                yield given["obj"], given.get("f"), False
            return
        called = self._called(call)
        if called is None or depth == 0:
            return
        used = ast.Tuple([*call.args, call.func], ast.Load())
        for node in walk(called):
            if isinstance(node, ast.Call):
                for _, place, _ in self._saves(node, depth - 1):
                    # the function's own names mean something else, or nothing, where it is called
                    yield used, place and in_callers_terms(place, called, call), True

    def _called(self, call: ast.Call) -> ast.FunctionDef | None:
        """The function that a call calls, or the method that it may be."""
        if isinstance(call.func, ast.Name):
            return self._definitions.function(call.func.id)
        if isinstance(call.func, ast.Attribute):
            return next((method for _, method in self._definitions.methods(call.func.attr)), None)
        return None

    def _texts(self, level: Level) -> PartialText:
        """What names stand for at a level, whose own hide the program's."""
        function = self._definitions.function(level.function) if level.function is not None else None
        own = {name for unit in level.units for name in unit.binds}
        own |= {parameter.arg for parameter in all_parameters(function.args)} if function else set()
        outer = {name: node for name, node in self._expressions.items() if name not in own}
        return PartialText({**outer, **bound_once(level.units)}, self._aliases, self._definitions)

    def _name(self, node: ast.expr | None, texts: PartialText) -> str:
        """The name of a file as far as the source shows it."""
        if node is None:
            return UNKNOWN_PART
        return re.split(r"[/\\]", texts.of(node))[-1]


def _is_remarked(unit: Unit) -> bool:
    """Whether the remark stands on a statement's last line, even after its end."""
    last_line = unit.node.end_lineno or unit.node.lineno
    return REMARK.search(unit.cell.lines[last_line - 1]) is not None


def _trained(names: frozenset[str] | set[str], level: Level, position: int) -> frozenset[str]:
    """The models among names; without one, the names that hold what is trained.

    There are none if models are known here and none of these names was made from one: then they hold only
    models of other classes.

    Args:
        position: The position of the statement that uses the names.
    """
    models = frozenset(names) & level.trained.models
    holding = frozenset(name for name in names if name in level.trained)
    if (
        not models
        and level.trained.models
        and not level.trained.changed(holding, position) & level.trained.models
    ):
        return frozenset()
    return models or holding


def _single(names: frozenset[str]) -> str | None:
    return next(iter(names)) if len(names) == 1 else None
