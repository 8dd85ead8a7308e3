"""What the marks of a check say: which component it judges, its weight, and what it has to do with others.

Marks are read from the source, as they stand above a check or in the `pytestmark` of its file. One that is
almost one of these is refused: what it was to say would be lost in silence.
"""

import ast
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches

from grader.domain.errors import CourseError

_MARKS = ("component", "weight", "because", "explains", "shows")
_LIKENESS = 0.75  # from which a mark is one of these, misspelled; `slow` is not `shows`


@dataclass(frozen=True)
class AboutOthers:
    """What a check says of other checks.

    Attributes:
        explains: If these fail, its failure has the cause.
        shows: These hold wherever it holds; if they fail, its failure has the cause.
    """

    explains: tuple[str, ...] = ()
    shows: tuple[str, ...] = ()


@dataclass(frozen=True)
class NamedCauses:
    """What `pytest.mark.because` says: the checks that are causes, and whether the check is tried anyway."""

    checks: tuple[str, ...]
    tried_anyway: bool


@dataclass(frozen=True)
class CheckMarks:
    """What the marks of a check or of its file say; None: the mark is absent."""

    component: str | None = None
    weight: float | None = None
    causes: NamedCauses | None = None
    about_others: AboutOthers = AboutOthers()

    def causes_for(self, check: str) -> NamedCauses:
        """The causes that a file names for all its checks; the causes themselves get none of them."""
        if self.causes is None or check in self.causes.checks:
            return NamedCauses((), True)
        return self.causes


def marks_of_file(tree: ast.Module, file: str) -> CheckMarks:
    """What `pytestmark` says of all checks of a file.

    Raises:
        CourseError: A mark cannot be read.
    """
    for statement in tree.body:
        match statement:
            case (
                ast.Assign(targets=[ast.Name(id="pytestmark")], value=value)
                | ast.AnnAssign(target=ast.Name(id="pytestmark"), value=ast.expr() as value)
            ):
                return _marks(value.elts if isinstance(value, ast.List | ast.Tuple) else [value], file)
    return CheckMarks()


def own_marks(function: ast.FunctionDef | ast.AsyncFunctionDef, file: str) -> CheckMarks:
    """What the marks above a function say.

    Raises:
        CourseError: A mark cannot be read.
    """
    return _marks(function.decorator_list, file)


def _marks(expressions: Iterable[ast.expr], file: str) -> CheckMarks:
    component: str | None = None
    weight: float | None = None
    causes: NamedCauses | None = None
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
    return CheckMarks(component, weight, causes, AboutOthers(explains, shows))


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


def _causes(call: ast.Call, place: str) -> NamedCauses:
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
    return NamedCauses(tuple(dict.fromkeys(checks)), run)


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
