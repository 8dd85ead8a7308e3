"""The reference solution, known mistakes and oracle, loaded where only the judge can see them.

It decides which parts of the solution are executed (imports, definitions, literals), with the drawn values in
them. Faults in these files are the course's. The checks recognize mistakes; this module does not.

Tests: tests/judge/test_code_by_values.py, tests/judge/test_policies.py
"""

import ast
import contextlib
import importlib.util
import itertools
import json
import math
import sys
import traceback
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any

from grader.course.composing import parsed
from grader.course.course_files import file_text
from grader.course.editions import belongs_elsewhere, edition_text
from grader.course.variant_values import filled_code, is_written_out
from grader.domain.assignment import Assignment
from grader.domain.assignment_versions import Edition, Value, first_choices
from grader.domain.errors import CourseError
from grader.files.known_folders import visible
from grader.judge.source_places import looked_for
from grader.kit import Mismatch

LOOK_FOR = "Look for:"


@dataclass(frozen=True)
class Mistake:
    """A known wrong version of one component.

    Attributes:
        id: The file's name: `missing_scale`.
        component: Which part it is a version of.
        message: What the code does and what it should do: the first paragraph of the file's docstring.
        hint: One thing to try: the second paragraph.
        look_for: Kinds of code that mark the mistake's line: a last paragraph `Look for: softmax()`.
        namespace: The file's globals; the component's name gives the wrong class or function.
    """

    id: str
    component: str
    message: str
    hint: str
    look_for: tuple[str, ...]
    namespace: dict[str, Any]


class CourseCode:
    """The instructors' code: attribute access gives the solution's classes and functions.

    Attributes:
        mistakes: All of them, by id.
        oracle: The assignment's `oracle.py`, or its folder `oracle`. It computes the right output: it puts a
            student's weights into the solution's classes. It does the same for the mistakes' classes.
    """

    def __init__(
        self, solution: dict[str, Any], mistakes: dict[str, Mistake], oracle: ModuleType | None
    ) -> None:
        self._solution = solution
        self.mistakes = mistakes
        self.oracle = oracle

    def __getattr__(self, name: str) -> Any:
        try:
            return self._solution[name]
        except KeyError:
            raise AttributeError(f"the solution defines no {name}") from None

    def mistakes_of(self, component: str) -> list[Mistake]:
        """The known mistakes of a component, by id."""
        return [
            self.mistakes[id_] for id_ in sorted(self.mistakes) if self.mistakes[id_].component == component
        ]

    def named(self, id_: str, *, seen: Mismatch | None = None) -> Mismatch:
        """What to raise when the known mistake of that id was recognized.

        Args:
            seen: The difference by which it was recognized. It also holds the cause: other checks that fail
                for the same cause are folded under this one.
        """
        if id_ not in self.mistakes:
            raise CourseError(f"mistakes/{id_}.py: it does not exist, but a check recognizes it.")
        mistake = self.mistakes[id_]
        named = Mismatch(mistake.message, hint=mistake.hint, diagnosis=id_)
        if seen is not None:
            named.cause, named.concerns = seen.cause, seen.concerns
        return named

    def wrong(self, mistake: Mistake, *args: Any, **kwargs: Any) -> Any:
        """An object of the mistake's class."""
        return mistake.namespace[mistake.component](*args, **kwargs)

    @contextlib.contextmanager
    def replaced(self, mistake: Mistake, values: dict[str, Any]) -> Iterator[None]:
        """For a while, replace some of the solution's and the mistake's classes by others."""
        namespaces = [self._solution, mistake.namespace]
        before = [dict(namespace) for namespace in namespaces]
        # the mistake's own class is not replaced
        values = {name: value for name, value in values.items() if name != mistake.component}
        try:
            for namespace in namespaces:
                namespace.update(values)
            yield
        finally:
            for namespace, names in zip(namespaces, before, strict=True):
                namespace.update(names)


class CodeByValues:
    """The instructors' code with drawn values in it, executed once for each set of values."""

    def __init__(self, assignment: Assignment) -> None:
        self._assignment = assignment
        self._made: dict[str, CourseCode] = {}

    def prepare(self, most_sets: int) -> None:
        """Execute it for each set of values that can be drawn, or for one set if there are too many.

        Raises:
            CourseError: A file is missing or cannot be loaded.
        """
        stated = self._assignment.variant
        sets = math.prod(len(value.choices) for value in stated)
        if sets > most_sets:
            self.of(first_choices(stated))
            return
        names = [value.name for value in stated]
        for choices in itertools.product(*(value.choices for value in stated)):
            self.of(dict(zip(names, choices, strict=True)))

    def of(self, values: Mapping[str, Value]) -> CourseCode:
        """The code with these values.

        Raises:
            CourseError: A file is missing or cannot be loaded.
        """
        key = json.dumps(dict(values), sort_keys=True)
        if key not in self._made:
            self._made[key] = course_code(self._assignment, values)
        return self._made[key]


def course_code(assignment: Assignment, values: Mapping[str, Value] | None = None) -> CourseCode:
    """Load an assignment's solution (imports and definitions only), its mistakes and its oracle.

    Args:
        values: What is drawn, by name; None: each first choice.

    Raises:
        CourseError: A file is missing or cannot be loaded.
    """
    path = assignment.folder / "solution.py"
    if not path.exists():
        raise CourseError(f"{path.name}: the assignment '{assignment.id}' has no reference solution.")
    with _provided_modules(assignment):
        return _loaded(path, assignment, values)


@contextlib.contextmanager
def _provided_modules(assignment: Assignment) -> Iterator[None]:
    """For a while, the modules that the course provides for this assignment can be imported."""
    names = [file.name.removesuffix(".py") for file in assignment.provided if file.code]
    if not names:
        yield
        return
    folder = str(assignment.provided_folder)
    with freshly_imported(names):  # another assignment may provide a module of the same name
        sys.path.insert(0, folder)
        try:
            yield
        finally:
            sys.path.remove(folder)


@contextlib.contextmanager
def freshly_imported(names: Collection[str]) -> Iterator[None]:
    """For a while, modules of these names are imported anew; those that were there come back afterwards."""
    replaced = {name: sys.modules.pop(name) for name in names if name in sys.modules}
    try:
        yield
    finally:
        for name in names:
            sys.modules.pop(name, None)
        sys.modules.update(replaced)


def _loaded(path: Path, assignment: Assignment, values: Mapping[str, Value] | None) -> CourseCode:
    values = first_choices(assignment.variant) if values is None else values
    solution = _definitions(path, values, assignment.edition)
    mistakes = {}
    for file in visible(assignment.folder / "mistakes", "*.py"):
        if not belongs_elsewhere(file, assignment.edition):
            mistakes[file.stem] = _mistake(file, assignment, solution, values)
    package = assignment.folder / "oracle" / "__init__.py"
    oracle_path = package if package.exists() else assignment.folder / "oracle.py"
    oracle = _executed(oracle_path, {}, values, assignment.edition) if oracle_path.exists() else None
    return CourseCode(solution, mistakes, oracle)


def _definitions(path: Path, values: Mapping[str, Value], edition: Edition) -> dict[str, Any]:
    """The namespace of a script of which only imports, classes, functions and literals are executed."""
    text = edition_text(file_text(path, path.name), edition, path.name)
    tree = parsed(filled_code(text, values, path.name), path.name)
    kept: list[ast.stmt] = []
    for node in tree.body:
        wanted = ast.Import | ast.ImportFrom | ast.ClassDef | ast.FunctionDef
        value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
        if isinstance(node, wanted) or (value is not None and is_written_out(value)):
            kept.append(node)
    module = ModuleType(f"solution_of_{path.parent.name}")
    sys.modules[module.__name__] = module
    try:
        exec(compile(ast.Module(kept, []), str(path), "exec"), module.__dict__)  # noqa: S102 - instructors' own
    except Exception as error:
        raise _not_loaded(path, path.name, error) from error
    return module.__dict__


def _not_loaded(path: Path, shown: str, error: Exception) -> CourseError:
    """The error about a file of the course that raised one while it was executed."""
    frames = traceback.extract_tb(error.__traceback__)
    line = error.lineno if isinstance(error, SyntaxError) else None
    for frame in frames:
        line = frame.lineno if frame.filename == str(path) else line
    place = f"{shown}:{line}" if line else shown
    return CourseError(f"{place}: executing it raised {type(error).__name__}: {error}. Fix it.")


def _executed(path: Path, names: dict[str, Any], values: Mapping[str, Value], edition: Edition) -> ModuleType:
    """A file with drawn values, executed as a module in which some names are already defined."""
    # a unique name in this process: other assignments have files of the same names
    digest = sha256(str(path.resolve()).encode()).hexdigest()[:8]
    name = f"course_{digest}_{path.parent.name}_{path.stem}"
    within = [str(path.parent)] if path.stem == "__init__" else None
    spec = importlib.util.spec_from_file_location(name, path, submodule_search_locations=within)
    if spec is None or spec.loader is None:
        raise CourseError(f"{path.name}: it cannot be loaded.")
    module = importlib.util.module_from_spec(spec)
    module.__dict__.update(names)
    if within is not None:
        sys.modules[name] = module  # its own files import each other
    shown_path = f"{path.parent.name}/{path.name}"
    text = file_text(path, shown_path)
    filled = filled_code(edition_text(text, edition, shown_path), values, shown_path)
    try:
        if filled == text:
            spec.loader.exec_module(module)  # which may use cached bytecode
        else:
            exec(compile(filled, str(path), "exec"), module.__dict__)  # noqa: S102 - instructors' own
    except Exception as error:
        raise _not_loaded(path, shown_path, error) from error
    return module


def _mistake(
    path: Path, assignment: Assignment, solution: dict[str, Any], values: Mapping[str, Value]
) -> Mistake:
    """Load one file of `mistakes/`, which can use the solution's names and derive from its classes."""
    names = {name: value for name, value in solution.items() if not name.startswith("__")}
    module = _executed(path, names, values, assignment.edition)
    graded = [component.name for component in assignment.components]
    redefined = [name for name in graded if module.__dict__.get(name) is not names.get(name)]
    if len(redefined) != 1:
        raise CourseError(
            f"mistakes/{path.name}: it defines {len(redefined)} of the graded parts. Define exactly one of "
            f"{', '.join(graded)}."
        )
    paragraphs = [" ".join(p.split()) for p in (module.__doc__ or "").strip().split("\n\n") if p.strip()]
    look_for: tuple[str, ...] = ()
    if paragraphs and paragraphs[-1].startswith(LOOK_FOR):
        look_for = looked_for(paragraphs.pop().removeprefix(LOOK_FOR), f"mistakes/{path.name}")
    if not paragraphs:
        raise CourseError(
            f"mistakes/{path.name}: it has no docstring. Its first paragraph is what the student reads."
        )
    hint = paragraphs[1] if len(paragraphs) > 1 else ""
    return Mistake(path.stem, redefined[0], paragraphs[0], hint, look_for, module.__dict__)
