"""Reads of a seed or of a generator's state: such code could behave differently in the next training.

Reads are recognized by the names of attributes and functions, also as text. Two kinds of reads are left
alone: those that only keep the value (in a checkpoint, to restore it, to print it), and those that seed a
loader's workers as PyTorch documents it. It errs toward pointing out. Each note asks a person to look; no
points depend on it.

Tests: tests/analysis/test_randomness.py
"""

import ast
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from grader.analysis.constant_values import string
from grader.analysis.effects import Aliases
from grader.analysis.references import references
from grader.analysis.slicing import Graph, Reach
from grader.analysis.syntax_trees import FUNCTIONS, assigned, children, walk
from grader.analysis.units import Unit
from grader.domain.analyzed_program import TRAINING, Note, Place, Recipe, Script

# attributes that read a state, whatever object they belong to and however their names are written
READING = frozenset(
    (
        *("initial_seed", "_initial_seed", "get_rng_state", "get_rng_state_all", "getstate"),
        *("bit_generator", "_bit_generator", "get_bit_generator", "seed_seq", "_seed_seq", "_base_seed"),
        *("graphsafe_get_state", "clone_state", "get_cuda_rng_state", "get_device_states"),
    )
)
# attributes that one of the student's own classes may well have
AMBIGUOUS = frozenset(("get_state", "_seed", "_inst", "_rand", "__getstate__", "__reduce__", "__reduce_ex__"))
# functions that look up a name that is written as text
LOOKING_UP = frozenset(
    ("getattr", "getattr_static", "__getattribute__", "attrgetter", "methodcaller", "resolve_name", "locate")
)
RESTORING = frozenset({"set_rng_state", "set_rng_state_all", "set_device_states", "setstate", "set_state"})
REDIRECTING = frozenset(("redirect_stdout", "stdout", "BytesIO"))
# nodes that a value passes through on its way
THROUGH = (ast.Tuple, ast.List, ast.Starred, ast.keyword, ast.FormattedValue, ast.JoinedStr)
LONGEST_WAY = 6  # from one variable to the next
# without one of these words there is nothing to be found
HINTS = re.compile(rf"\b({'|'.join((*READING, *AMBIGUOUS, *LOOKING_UP, 'vars', '__dict__'))})\b")


@dataclass(frozen=True)
class TrainingCode:
    """The code that the grader's training executes.

    Attributes:
        reach: What its statements and expressions depend on.
        lines: (file or cell, first line, last line) of its statements, which may lie within a function.
    """

    reach: Reach
    lines: tuple[tuple[str, int, int], ...]

    def holds(self, unit: Unit, line: int) -> bool:
        """Whether a line of a statement is executed when training."""
        file = unit.place.file
        is_within = any(
            file == file_or_cell and first <= line <= last for file_or_cell, first, last in self.lines
        )
        return is_within or unit.index in self.reach.units


def training_code(graph: Graph, recipe: Recipe, script: Script) -> TrainingCode:
    """The code that a recipe executes: its statements, loop and expressions, and what they depend on."""
    statements = (*recipe.all_statements, *script.statements)
    texts = [*(statement.source for statement in statements), *recipe.expressions]
    names: set[str] = set()
    for text in texts:
        for node in ast.parse(text).body:
            used_references = references(node, {})
            names |= used_references.names(eager=True) | used_references.names(eager=False)
    lines = tuple(
        (item.place.file, item.place.line, item.place.line + item.source.count("\n")) for item in statements
    )
    return TrainingCode(graph.reach(names, executed=False), lines)


def state_reads(
    units: Sequence[Unit],
    aliases: Aliases,
    reaches: Mapping[str, Reach],
    graph: Graph,
    recipe: Recipe,
    script: Script,
) -> list[Note]:
    """Notes on code that reads a seed or a generator's state and that grading reaches.

    Args:
        units: The whole program.
        aliases: The same program's.
        reaches: Graded name, or TRAINING -> what it depends on.
        graph: The same program's.
        recipe, script: What training executes.
    """
    # Python reads identifiers in this form
    if not any(HINTS.search(unicodedata.normalize("NFKC", unit.text)) for unit in units):
        return []
    source, training = _Source(units, aliases), training_code(graph, recipe, script)
    reads_by_place: dict[Place, tuple[str, list[str]]] = {}
    for unit in units:
        for node, name in source.reads(unit):
            users = [user for user, reach in reaches.items() if unit.index in reach.units]
            if TRAINING not in users and training.holds(unit, node.lineno):
                users.append(TRAINING)
            if users and not source.is_left_alone(node, name):
                reads_by_place.setdefault(unit.cell.place(node.lineno), (name, users))
    return [
        Note(
            f"{place}: `{name}` reads a seed or a generator's state, for {', '.join(users)}; "
            "a person should look at what it does.",
            ask_person=True,
        )
        for place, (name, users) in reads_by_place.items()
    ]


class _Source:
    """Answers questions about single expressions of a whole program."""

    def __init__(self, units: Sequence[Unit], aliases: Aliases) -> None:
        self._units = units
        self._aliases = aliases
        # `from torch import initial_seed as seed`, wherever it is
        self._imported: dict[str, str] = {}
        self._rebound: set[str] = set()
        stars = False
        for node in self._nodes():
            if isinstance(node, ast.ImportFrom):
                stars |= any(alias.name == "*" for alias in node.names)
                self._imported |= {
                    alias.asname or alias.name: alias.name
                    for alias in node.names
                    if alias.name in READING | AMBIGUOUS
                }
            elif isinstance(node, (*FUNCTIONS, ast.ClassDef)):
                self._rebound.add(node.name)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                self._rebound.add(node.id)
            # what could redirect what is printed, saved or put back
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                self._rebound.add(node.attr)
            elif isinstance(node, ast.Constant) and node.value in RESTORING:
                self._rebound.add(node.value)
            if isinstance(node, ast.Name | ast.Attribute):
                self._rebound |= {node.id if isinstance(node, ast.Name) else node.attr} & REDIRECTING
        if stars:
            self._imported |= {name: name for name in READING - self._rebound}
        self._strings = {
            target.id: pair[1].value
            for unit in units
            if (pair := assigned(unit.node)) and isinstance(pair[1], ast.Constant)
            for target in pair[0]
            if isinstance(target, ast.Name) and isinstance(pair[1].value, str)
        }

    def _nodes(self) -> Iterator[ast.AST]:
        for unit in self._units:
            yield from walk(unit.node)

    def reads(self, unit: Unit) -> Iterator[tuple[ast.expr | ast.pattern, str]]:
        """The expressions of a statement that stand for a seed or a state, each with its name."""
        for node in walk(unit.node):
            match node:
                case ast.Attribute(attr=name, ctx=ast.Load()) if name in READING | AMBIGUOUS:
                    yield node, name
                case ast.Name(id=imported_name, ctx=ast.Load()) if imported_name in self._imported:
                    yield node, self._imported[imported_name]
                case ast.MatchClass(kwd_attrs=names):
                    for name in (READING | AMBIGUOUS).intersection(names):
                        yield node, name
                case ast.Call(args=texts) if self._last_parts(node) & LOOKING_UP:
                    yield from ((node, name) for name in self._named_in(texts))
                case ast.Subscript(value=container, slice=key) if _is_namespace(container):
                    yield from ((node, name) for name in self._named_in([key]))

    def _named_in(self, texts: Sequence[ast.expr]) -> Iterator[str]:
        """The seeds and states that are named by texts: `"initial" + "_seed"`."""
        for expression in texts:
            text = string(expression, self._strings)
            name = (text or "").rpartition(".")[2]
            if name in READING or name == "get_state":
                yield name

    def _last_parts(self, call: ast.Call) -> set[str]:
        """The names of what is called, without the objects that they are attributes of."""
        return {name.rpartition(".")[2] for name in self._aliases.names_of(call.func)}

    # --- what is left alone ---

    @cached_property
    def _parents(self) -> dict[int, ast.AST]:
        """`id` of a node -> the node that it is directly part of."""
        return {id(child): node for node in self._nodes() for child in children(node)}

    @cached_property
    def _loads(self) -> dict[str, list[ast.Name]]:
        """Where names are used."""
        loads: dict[str, list[ast.Name]] = defaultdict(list)
        for node in self._nodes():
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                loads[node.id].append(node)
        return loads

    def _above(self, node: ast.AST) -> Iterator[ast.AST]:
        """What a node is part of, from the inside out."""
        while (parent := self._parents.get(id(node))) is not None:
            yield parent
            node = parent

    def is_left_alone(self, node: ast.AST, name: str) -> bool:
        """Whether a read is of a student's own attribute, seeds a loader's workers, or is only kept."""
        if isinstance(node, ast.Attribute) and name in AMBIGUOUS and self._is_own(node):
            return True
        if self._seeds_loaders(node):
            return True
        called = self._parents.get(id(node))
        value = called if isinstance(called, ast.Call) and called.func is node else node
        return isinstance(node, ast.Attribute | ast.Name) and self._is_kept(value, LONGEST_WAY)

    def _is_own(self, node: ast.Attribute) -> bool:
        """Whether an attribute is one that a class of the program defines for its objects."""
        owners = {
            definition.name
            for definition in self._nodes()
            if isinstance(definition, ast.ClassDef) and node.attr in _attribute_names(definition)
        }
        if isinstance(node.value, ast.Call):
            return isinstance(node.value.func, ast.Name) and node.value.func.id in owners | {"super"}
        if not isinstance(node.value, ast.Name):
            return False
        if node.value.id == "self":
            inner = next(
                (owner_node for owner_node in self._above(node) if isinstance(owner_node, ast.ClassDef)), None
            )
            return inner is not None and inner.name in owners
        bound_values = [
            pair[1]
            for statement in self._nodes()
            if isinstance(statement, ast.stmt) and (pair := assigned(statement)) is not None
            for target in pair[0]
            if isinstance(target, ast.Name) and target.id == node.value.id
        ]
        return bool(bound_values) and all(
            isinstance(bound_value, ast.Call)
            and isinstance(bound_value.func, ast.Name)
            and bound_value.func.id in owners
            for bound_value in bound_values
        )

    def _seeds_loaders(self, node: ast.AST) -> bool:
        """Whether a node is inside a function that is used only as a loader's `worker_init_fn`."""
        for outer in self._above(node):
            if isinstance(outer, ast.Lambda) and self._is_worker_init(outer):
                return True
            if not isinstance(outer, ast.FunctionDef) or outer.decorator_list:
                continue
            uses = self._loads.get(outer.name, [])
            method = isinstance(self._parents.get(id(outer)), ast.ClassDef)
            if uses and not method and all(map(self._is_worker_init, uses)):
                return True
        return False

    def _is_worker_init(self, function: ast.expr) -> bool:
        """Whether a function is given to a loader for its workers, perhaps as a partial."""
        place = self._parents.get(id(function))
        if isinstance(place, ast.Call) and function in place.args[:1] and self._is_call_of(place, "partial"):
            place = self._parents.get(id(place))
        if not isinstance(place, ast.keyword) or place.arg != "worker_init_fn":
            return False
        call = self._parents.get(id(place))
        return isinstance(call, ast.Call) and self._is_call_of(call, "DataLoader")

    def _is_call_of(self, call: ast.Call, name: str) -> bool:
        """Whether a call is of PyTorch's or Python's own function or class of that name."""
        homes = ("torch.utils.data.", "functools.")
        names = self._aliases.names_of(call.func)
        return name not in self._rebound and all(
            dotted == name or (dotted.startswith(homes) and dotted.endswith(f".{name}")) for dotted in names
        )

    def _is_kept(self, node: ast.AST, steps_left: int) -> bool:
        """Whether what an expression yields is only put back, written into a file, or printed."""
        if steps_left == 0:
            return False
        key: ast.expr | None = None
        for outer in self._above(node):
            if isinstance(outer, ast.Call):
                return node is not outer.func and self._takes_it(outer, key)
            if isinstance(outer, ast.Dict):
                if node not in outer.values:
                    return False
                key = outer.keys[outer.values.index(node)]
            elif isinstance(outer, ast.Subscript):
                if node is not outer.value or not isinstance(outer.ctx, ast.Load):
                    return False
            elif isinstance(outer, ast.IfExp):
                if node is outer.test:
                    return False
            elif isinstance(outer, ast.Assign | ast.AnnAssign):
                return self._is_kept_in(outer, key, steps_left - 1)
            elif isinstance(outer, ast.Expr):
                return True  # nothing is done with it
            elif isinstance(outer, ast.Compare):
                other_sides = [side for side in (outer.left, *outer.comparators) if side is not node]
                return all(isinstance(side, ast.Constant) and side.value is None for side in other_sides)
            elif not isinstance(outer, THROUGH):
                return False
            node = outer
        return False

    def _takes_it(self, call: ast.Call, key: ast.expr | None) -> bool:
        """Whether a call puts back what it is given, prints it, or saves it under a key that is not read."""
        names = self._last_parts(call)
        if not names or names & self._rebound:
            return False
        if names <= RESTORING:
            return True
        if names == {"print"}:
            return not call.keywords and not self._rebound & (REDIRECTING - {"BytesIO"})
        keywords = {keyword.arg for keyword in call.keywords}
        is_save = self._aliases.names_of(call.func) == ("torch.save",) and keywords <= {"obj", "f"}
        return is_save and "BytesIO" not in self._rebound and self._is_never_read(key)

    def _is_never_read(self, key: ast.expr | None) -> bool:
        """Whether a key of what is saved is used nowhere else, except to put the value back."""
        if not isinstance(key, ast.Constant):
            return False
        other_uses = [
            node
            for node in self._nodes()
            if isinstance(node, ast.Constant) and node.value == key.value and node is not key
        ]
        return all(self._is_put_back(other_use) for other_use in other_uses)

    def _is_put_back(self, node: ast.AST) -> bool:
        """Whether an expression is part of what is put back: `torch.set_rng_state(saved["rng"])`."""
        for outer in self._above(node):
            if isinstance(outer, ast.Call):
                names = self._last_parts(outer)
                return bool(names) and names <= RESTORING - self._rebound
            if not isinstance(outer, ast.Subscript):
                return False
        return False

    def _is_kept_in(
        self, statement: ast.Assign | ast.AnnAssign, key: ast.expr | None, steps_left: int
    ) -> bool:
        """Whether a variable is used only to keep what it holds."""
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        names: list[str] = []
        for target in targets:
            if isinstance(target, ast.Subscript) and isinstance(
                target.value, ast.Name
            ):  # state["torch"] = ...
                key, target = target.slice, target.value
            parts = target.elts if isinstance(target, ast.Tuple) else [target]
            if not all(isinstance(part, ast.Name) for part in parts):
                return False
            names += [part.id for part in parts if isinstance(part, ast.Name)]
        loads = [load for name in names for load in self._loads.get(name, []) if not self._is_stored(load)]
        return all(self._keeps_key(load, key, steps_left) for load in loads)

    def _is_stored(self, load: ast.Name) -> bool:
        """Whether a name is used to store something under a key of it."""
        place = self._parents.get(id(load))
        return isinstance(place, ast.Subscript) and isinstance(place.ctx, ast.Store) and place.value is load

    def _keeps_key(self, load: ast.Name, key: ast.expr | None, steps_left: int) -> bool:
        """`_is_kept` for a variable that is the value, or holds it under a key."""
        place = self._parents.get(id(load))
        if isinstance(place, ast.Call) and key is not None and load in place.args:
            return self._takes_it(place, key)
        return self._is_kept(load, steps_left)


def _attribute_names(node: ast.ClassDef) -> set[str]:
    """The names of a class's methods, and of the attributes that its code sets."""
    method_names = {inner.name for inner in node.body if isinstance(inner, FUNCTIONS)}
    return method_names | {
        inner.attr
        for inner in walk(node)
        if isinstance(inner, ast.Attribute) and isinstance(inner.ctx, ast.Store)
    }


def _is_namespace(node: ast.expr) -> bool:
    """Whether an expression is the dictionary of a module or an object: `vars(torch)`, `torch.__dict__`."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id == "vars"
    return isinstance(node, ast.Attribute) and node.attr == "__dict__"
