"""Finds the checks that check files declare, by parsing.

Because checks are found without executing anything, a missing finding of a check is noticed. It decides
which checks there are; what their marks say, and which order follows, stands beside it. It never runs a check
and never judges its findings.
"""

import ast
import functools
import warnings
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

from grader.course.check_causes import causes_first
from grader.course.check_marks import AboutOthers, CheckMarks, marks_of_file, own_marks
from grader.course.course_files import file_content
from grader.course.toml_file import listing, remedy
from grader.domain.assignment import SUBMISSION, CheckSpec
from grader.domain.errors import CourseError
from grader.files.known_folders import PUBLIC_CHECKS, is_public_checks, public_checks, visible

CHECKS, TRAINED = "checks", "trained"  # folders of an assignment
_PREFIX = "test_"
_INSTRUCTORS_FIXTURES = ("reference", "trained")


def trained_checks(
    folder: Path, components: Collection[str], left_out: Collection[str] = ()
) -> tuple[CheckSpec, ...]:
    """The checks of a trained model: `trained/test_*.py` of an assignment's folder. See `checks`."""
    return _all_declared(sorted((folder / TRAINED).glob(f"{_PREFIX}*.py")), components, left_out)


def checks(
    folder: Path,
    components: Collection[str],
    *,
    public_only: bool = False,
    left_out: Collection[str] = (),
) -> tuple[CheckSpec, ...]:
    """The checks of an assignment, each after the causes it names.

    They are in the order of the components, and within one in that of their files and lines.

    Args:
        folder: The assignment's folder: its checks are `checks/test_*.py`, or a student's public
            checks.
        components: The components that a check may judge, besides `submission`.
        public_only: The folder is a student's: only its public checks count.
        left_out: Components of other editions, whose checks are left out.

    Returns:
        One entry for each test function; one that pytest would run with several parameters is one check.

    Raises:
        CourseError: A file is not Python, a check lacks something or is declared twice, or checks name causes
            that they cannot have.
    """
    files = [] if public_only else sorted((folder / CHECKS).glob(f"{_PREFIX}*.py"))
    if not files:
        files = public_checks(folder)
    _require_one_kind([path.name for path in files if is_public_checks(path.name)])
    if not public_only:
        _require_collected(folder / CHECKS, set(files))
    return _all_declared(files, components, left_out)


def _require_one_kind(public: Sequence[str]) -> None:
    """Check that public checks are in `test_public.py` or in several files, not in both."""
    if PUBLIC_CHECKS in public and len(public) > 1:
        other = next(name for name in public if name != PUBLIC_CHECKS)
        raise CourseError(
            f"{PUBLIC_CHECKS} and {other} are there: public checks are in the one file or in several. "
            "Remove the file that is left from before."
        )


def _require_collected(folder: Path, files: Collection[Path]) -> None:
    """Refuse a check in a file that is not one of check files: it would never be made, and nobody would see.

    Args:
        folder: Of the checks.
        files: Whose checks are made.
    """
    for path in visible(folder, "**/*.py"):
        name = path.relative_to(folder).as_posix()
        if path in files or not path.is_file():
            continue
        try:
            tree = _parsed(name, file_content(path, f"{folder.name}/{name}"))
        except CourseError:
            continue  # whatever it is, no check comes of it
        for function in _functions(tree):
            if function.name.startswith(_PREFIX) and own_marks(function, name).component:
                raise CourseError(
                    f"{folder.name}/{name}:{function.lineno}: {function.name} is never run: checks are in "
                    f"{folder.name}/{_PREFIX}*.py. Rename or move the file."
                )


def _functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """The functions of a file itself."""
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            yield statement


def _all_declared(
    files: Iterable[Path], components: Collection[str], left_out: Collection[str]
) -> tuple[CheckSpec, ...]:
    order = (SUBMISSION, *components, *sorted(left_out))
    places: dict[str, str] = {}
    specs = []
    about_others: dict[str, AboutOthers] = {}
    for path in files:
        for line, spec, said in _declared(
            path.name,
            file_content(path, f"{path.parent.name}/{path.name}"),
            (*components, SUBMISSION, *sorted(left_out)),
        ):
            place = f"{path.name}:{line}"
            if spec.id in places:
                raise CourseError(
                    f"{place}: {_PREFIX}{spec.id} is also declared at {places[spec.id]}. Rename one of them."
                )
            places[spec.id] = place
            about_others[spec.id] = said
            specs.append(spec)
    specs.sort(key=lambda spec: order.index(spec.component))
    ordered = causes_first(specs, about_others, places)
    return tuple(spec for spec in ordered if spec.component not in left_out)


# one process reads an assignment many times
@functools.lru_cache(256)
def _declared(
    file: str, content: bytes, components: tuple[str, ...]
) -> tuple[tuple[int, CheckSpec, AboutOthers], ...]:
    """The checks of a file, each with its line and what it says of other checks."""
    tree = _parsed(file, content)
    for line, name in _misplaced(tree):
        raise CourseError(
            f"{file}:{line}: {name} is inside another statement, where it is not counted. "
            "Make it a function of the file itself."
        )
    everywhere = marks_of_file(tree, file)
    declared = []
    for function in _functions(tree):
        if function.name.startswith(_PREFIX):
            declared.append((function.lineno, *_spec(function, everywhere, file, components)))
        elif own_marks(function, file) != CheckMarks():
            raise CourseError(
                f"{file}:{function.lineno}: {function.name} has the marks of a check, and is never run: its "
                f"name does not begin with {_PREFIX}. Rename it, or remove the marks."
            )
    return tuple(declared)


def _parsed(file: str, content: bytes) -> ast.Module:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an invalid escape such as "\d" is no reason to refuse a file
            return ast.parse(content, filename=file)
    except SyntaxError as error:
        place = f"{file}:{error.lineno}" if error.lineno else file
        raise CourseError(f"{place}: this is not valid Python ({error.msg}). Fix it.") from None
    except (ValueError, RecursionError, MemoryError):
        raise CourseError(f"{file} is not a Python source file that can be read. Save it again.") from None


def _misplaced(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Tests in classes or under an `if`: pytest would run them, but nobody would notice if one is missing."""
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for node in ast.walk(statement):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith(_PREFIX):
                yield node.lineno, node.name


def _spec(
    function: ast.FunctionDef | ast.AsyncFunctionDef,
    file_marks: CheckMarks,
    file: str,
    components: tuple[str, ...],
) -> tuple[CheckSpec, AboutOthers]:
    """A check, and what it says of other checks."""
    where = f"{file}:{function.lineno}: {function.name}"
    title = (ast.get_docstring(function) or "").strip().partition("\n")[0].strip()
    if not title:
        raise CourseError(f"{where} has no docstring. Its first line is what the student reads.")
    own = own_marks(function, file)
    component = own.component or file_marks.component
    if component is None:
        raise CourseError(
            f"{where} does not say which component it judges. "
            f'Write @pytest.mark.component("{components[0]}") above it.'
        )
    if component not in components:
        advice = remedy(component, components, f"There are {listing(components)}.")
        raise CourseError(f"{where} judges the component '{component}', which does not exist. {advice}")
    if is_public_checks(file):
        _require_students_fixtures(function, where)
    _require_verdict(function, where)
    check = function.name.removeprefix(_PREFIX)
    causes = own.causes or file_marks.causes_for(check)
    spec = CheckSpec(
        id=check,
        component=component,
        title=title,
        weight=next((weight for weight in (own.weight, file_marks.weight) if weight is not None), 1.0),
        public=is_public_checks(file),
        file=file,
        because=causes.checks,
        tried_anyway=causes.tried_anyway,
    )
    return spec, own.about_others


def _require_students_fixtures(function: ast.FunctionDef | ast.AsyncFunctionDef, where: str) -> None:
    """Refuse a public check that asks for what no student's machine has."""
    for argument in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs):
        if argument.arg in _INSTRUCTORS_FIXTURES:
            raise CourseError(
                f"{where} asks for `{argument.arg}`, which students do not have. Move the check to another "
                "file, which makes it a hidden one, or let it do without."
            )


def _require_verdict(function: ast.FunctionDef | ast.AsyncFunctionDef, where: str) -> None:
    """Refuse a check that answers by what it returns, or when it is awaited: everything would pass it."""
    if isinstance(function, ast.AsyncFunctionDef):
        raise CourseError(f"{where} is never run: nobody awaits it. Write `def` in place of `async def`.")
    stack: list[ast.AST] = [*function.body]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            continue
        if isinstance(node, ast.Return) and not _is_nothing(node.value):
            raise CourseError(
                f"{where} returns a value in line {node.lineno}, and nobody looks at it. "
                "Write an assertion: a check fails by what it raises."
            )
        stack += ast.iter_child_nodes(node)


def _is_nothing(value: ast.expr | None) -> bool:
    return value is None or (isinstance(value, ast.Constant) and value.value is None)
