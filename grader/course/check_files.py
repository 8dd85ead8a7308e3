"""Finds the checks that check files declare, with the causes that they name, by parsing.

Because checks are found without executing anything, a missing finding of a check is noticed. It decides
which checks there are, and their order: each comes after the checks that are its causes. It never runs a
check and never judges its findings.
"""

import ast
import functools
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path

from grader.course.course_files import file_content
from grader.course.toml_file import listing, remedy
from grader.domain.assignment import SUBMISSION, CheckSpec
from grader.domain.errors import CourseError
from grader.files.known_folders import PUBLIC_CHECKS, is_public_checks, public_checks, visible


@dataclass(frozen=True)
class AboutOthers:
    """What a check says of other checks.

    Attributes:
        explains: If these fail, its failure has the cause.
        shows: These hold wherever it holds; if they fail, its failure has the cause.
    """

    explains: tuple[str, ...] = ()
    shows: tuple[str, ...] = ()


def with_explained(
    specs: Sequence[CheckSpec], about_others: Mapping[str, AboutOthers], places: Mapping[str, str]
) -> tuple[CheckSpec, ...]:
    """The checks; to the causes that each names itself, the checks that explain or show it are added.

    Args:
        about_others: Check -> what it says of others.
        places: Check -> where it is declared, for messages.

    Raises:
        CourseError: A check explains or shows itself, one that does not exist, or one of another component;
            or a public check names a cause that students do not have.
    """
    spec_by_id = {spec.id: spec for spec in specs}
    for spec in specs:
        for name in spec.because:
            if spec.public and name in spec_by_id and not spec_by_id[name].public:
                raise CourseError(
                    f"{places[spec.id]}: test_{spec.id} names '{name}' as its cause, which students do not "
                    "have. Name a public check."
                )
    causes: dict[str, list[str]] = {}
    shown_by: dict[str, list[str]] = {}
    for spec in specs:
        other_checks = {check: other for check, other in spec_by_id.items() if check != spec.id}
        said = about_others.get(spec.id, AboutOthers())
        for verb, names in (("explains", said.explains), ("shows", said.shows)):
            for name in names:
                claim = f"{places[spec.id]}: test_{spec.id} {verb} '{name}'"
                _require_known(spec, name, other_checks, claim, "no such other check")
                causes.setdefault(name, []).append(spec.id)
        for name in said.shows:
            shown_by.setdefault(name, []).append(spec.id)
    return tuple(
        replace(
            spec,
            because=tuple(dict.fromkeys((*spec.because, *causes.get(spec.id, ())))),
            shown_by=tuple(shown_by.get(spec.id, ())),
        )
        for spec in specs
    )


def causes_first(specs: Sequence[CheckSpec], places: Mapping[str, str]) -> tuple[CheckSpec, ...]:
    """The checks in their order, but each after those that it names as its causes.

    Args:
        specs: In the order of their components, files and lines.
        places: Check -> where it is declared, for messages.

    Raises:
        CourseError: A check names one that does not exist, one of another component, or one that names it in
            turn.
    """
    spec_by_id = {spec.id: spec for spec in specs}
    for spec in specs:
        for name in spec.because:
            claim = f"{places[spec.id]}: test_{spec.id} names '{name}' as its cause"
            _require_known(spec, name, spec_by_id, claim, "no such check")
    ordered: dict[str, CheckSpec] = {}
    for spec in specs:
        ordered |= {placed.id: placed for placed in _after_causes(spec, spec_by_id, places, ())}
    return tuple(ordered.values())


def _require_known(
    spec: CheckSpec, name: str, checks: Mapping[str, CheckSpec], claim: str, absent: str
) -> None:
    """Check that the name in a check's mark is a check of the same component.

    Args:
        checks: The checks that it may name.
        claim: The beginning of the message: who names what.
        absent: What the message calls a check that does not exist.
    """
    if name not in checks:
        same_component = [
            check.id for check in checks.values() if check.component == spec.component and check.id != spec.id
        ]
        advice = remedy(
            name,
            same_component,
            f"{spec.component} has {listing(same_component)}." if same_component else "Remove the mark.",
        )
        raise CourseError(f"{claim}, and there is {absent}. {advice}")
    if checks[name].component != spec.component:
        raise CourseError(
            f"{claim}, which judges {checks[name].component}. Name one that judges {spec.component}, too."
        )


def _after_causes(
    spec: CheckSpec, spec_by_id: Mapping[str, CheckSpec], places: Mapping[str, str], above: tuple[str, ...]
) -> Iterator[CheckSpec]:
    """The check, after all checks that it names, directly or indirectly.

    Args:
        above: The chain of checks that led here, each named by the one before.
    """
    if spec.id in above:
        circle = [f"'{check}'" for check in (*above[above.index(spec.id) :], spec.id)]
        raise CourseError(
            f"{places[spec.id]}: {' because of '.join(circle)}: the causes go around in a circle. "
            "Remove one of these marks."
        )
    for name in spec.because:
        yield from _after_causes(spec_by_id[name], spec_by_id, places, (*above, spec.id))
    yield spec


# --- check files -----------------------------------------------------------------------------------------


CHECKS, TRAINED = "checks", "trained"  # folders of an assignment
_PREFIX = "test_"
_MARKS = ("component", "weight", "because", "explains", "shows")
_LIKENESS = 0.75  # from which a mark is one of these, misspelled; `slow` is not `shows`
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
            if function.name.startswith(_PREFIX) and _marks(function.decorator_list, name).component:
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
    ordered = causes_first(with_explained(specs, about_others, places), places)
    return tuple(spec for spec in ordered if spec.component not in left_out)


@dataclass(frozen=True)
class _Causes:
    """What `pytest.mark.because` says: the checks that are causes, and whether the check is tried anyway."""

    checks: tuple[str, ...]
    tried_anyway: bool


@dataclass(frozen=True)
class _Marks:
    """What the marks of a check or of its file say; None: the mark is absent."""

    component: str | None = None
    weight: float | None = None
    causes: _Causes | None = None
    about_others: AboutOthers = AboutOthers()


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
    everywhere = _marks(_module_marks(tree), file)
    declared = []
    for function in _functions(tree):
        if function.name.startswith(_PREFIX):
            declared.append((function.lineno, *_spec(function, everywhere, file, components)))
        elif _marks(function.decorator_list, file) != _Marks():
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
    file_marks: _Marks,
    file: str,
    components: tuple[str, ...],
) -> tuple[CheckSpec, AboutOthers]:
    """A check, and what it says of other checks."""
    where = f"{file}:{function.lineno}: {function.name}"
    title = (ast.get_docstring(function) or "").strip().partition("\n")[0].strip()
    if not title:
        raise CourseError(f"{where} has no docstring. Its first line is what the student reads.")
    own_marks = _marks(function.decorator_list, file)
    component = own_marks.component or file_marks.component
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
    causes = own_marks.causes or _file_causes_for(file_marks.causes, check)
    spec = CheckSpec(
        id=check,
        component=component,
        title=title,
        weight=next((weight for weight in (own_marks.weight, file_marks.weight) if weight is not None), 1.0),
        public=is_public_checks(file),
        file=file,
        because=causes.checks,
        tried_anyway=causes.tried_anyway,
    )
    return spec, own_marks.about_others


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


def _file_causes_for(file_causes: _Causes | None, check: str) -> _Causes:
    """The causes that a file names for all its checks; the causes themselves get none of them."""
    return file_causes if file_causes is not None and check not in file_causes.checks else _Causes((), True)


def _module_marks(tree: ast.Module) -> list[ast.expr]:
    """The expressions in `pytestmark`."""
    for statement in tree.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id="pytestmark")], value=value):
                return value.elts if isinstance(value, ast.List | ast.Tuple) else [value]
            case ast.AnnAssign(target=ast.Name(id="pytestmark"), value=ast.expr() as value):
                return value.elts if isinstance(value, ast.List | ast.Tuple) else [value]
    return []


def _marks(expressions: Iterable[ast.expr], file: str) -> _Marks:
    component: str | None = None
    weight: float | None = None
    causes: _Causes | None = None
    explains: tuple[str, ...] = ()
    shows: tuple[str, ...] = ()
    for expression in expressions:
        match expression:
            case ast.Call(func=ast.Attribute(attr="component", value=owner)) if _is_mark(owner):
                place = f"{file}:{expression.lineno}"
                if component is not None:
                    raise CourseError(f"{place}: a check judges one component. Remove the second mark.")
                component = _component(expression, place)
            case ast.Call(func=ast.Attribute(attr="weight", value=owner)) if _is_mark(owner):
                weight = _weight(expression, f"{file}:{expression.lineno}")
            case ast.Call(func=ast.Attribute(attr="because", value=owner)) if _is_mark(owner):
                place = f"{file}:{expression.lineno}"
                if causes is not None:
                    raise CourseError(f"{place}: a check names all its causes in one mark. Join the two.")
                causes = _causes(expression, place)
            case ast.Call(func=ast.Attribute(attr="explains", value=owner)) if _is_mark(owner):
                explains += _ids(expression, f"{file}:{expression.lineno}", "explains")
            case ast.Call(func=ast.Attribute(attr="shows", value=owner)) if _is_mark(owner):
                shows += _ids(expression, f"{file}:{expression.lineno}", "shows")
            case ast.Attribute(attr=name, value=owner) if name in _MARKS and _is_mark(owner):
                raise CourseError(
                    f"{file}:{expression.lineno}: pytest.mark.{name} needs a value in parentheses."
                )
            case (
                ast.Call(func=ast.Attribute(attr=name, value=owner)) | ast.Attribute(attr=name, value=owner)
            ) if _is_mark(owner):
                _require_no_misspelling(name, f"{file}:{expression.lineno}")
    return _Marks(component, weight, causes, AboutOthers(explains, shows))


def _require_no_misspelling(name: str, place: str) -> None:
    """Refuse a mark that means nothing and is almost one of ours: a weight would be lost in silence."""
    meant = get_close_matches(name, _MARKS, n=1, cutoff=_LIKENESS)
    if meant:
        raise CourseError(f"{place}: pytest.mark.{name} means nothing here. Did you mean '{meant[0]}'?")


def _is_mark(owner: ast.expr) -> bool:
    """Whether it is `pytest.mark` or `mark`."""
    match owner:
        case ast.Attribute(attr="mark", value=ast.Name(id="pytest")) | ast.Name(id="mark"):
            return True
    return False


def _component(call: ast.Call, place: str) -> str:
    match call:
        case ast.Call(args=[ast.Constant(value=str(name))], keywords=[]):
            return name
    raise CourseError(
        f'{place}: pytest.mark.component needs one name in quotes, as in component("Attention").'
    )


def _weight(call: ast.Call, place: str) -> float:
    match call:
        case ast.Call(args=[ast.Constant(value=int() | float() as value)], keywords=[]) if not isinstance(
            value, bool
        ) and 0 < value < float("inf"):
            return float(value)
    raise CourseError(f"{place}: pytest.mark.weight needs one number above zero, as in weight(2).")


def _causes(call: ast.Call, place: str) -> _Causes:
    run: object = True
    match call:
        case ast.Call(keywords=[]):
            pass
        case ast.Call(keywords=[ast.keyword(arg="run", value=ast.Constant(value=run))]):
            pass
        case _:
            run = None
    checks = _texts(call)
    if not checks or not isinstance(run, bool):
        raise CourseError(
            f"{place}: pytest.mark.because needs the ids of checks in quotes, and at most a run=False, as in "
            'because("keeps_the_shape").'
        )
    return _Causes(tuple(dict.fromkeys(checks)), run)


def _ids(call: ast.Call, place: str, mark: str) -> tuple[str, ...]:
    checks = _texts(call)
    if not checks or call.keywords:
        raise CourseError(
            f'{place}: pytest.mark.{mark} needs the ids of checks in quotes, as in {mark}("keeps_the_shape").'
        )
    return checks


def _texts(call: ast.Call) -> tuple[str, ...]:
    """The positional arguments if all are texts; otherwise none."""
    values = [argument.value for argument in call.args if isinstance(argument, ast.Constant)]
    texts = tuple(value for value in values if isinstance(value, str))
    return texts if len(texts) == len(call.args) else ()
