"""The signatures that `assignment.toml` states, compared with those of the solution."""

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path

from grader.course.editions import edition_text
from grader.domain.assignment import PROVIDED, Component, ProvidedFile
from grader.domain.edition import Edition
from grader.domain.errors import CourseError

Definition = ast.ClassDef | ast.FunctionDef

_KINDS = {"class": ast.ClassDef, "function": ast.FunctionDef}
_CONSTRUCTOR = "__init__"


def compare_signatures(
    folder: Path, components: Sequence[Component], edition: Edition, provided: Sequence[ProvidedFile] = ()
) -> None:
    """Let each component's signature be the solution's, whose stubs students fill in.

    Args:
        folder: `reference/<id>` of a course.
        provided: The files that students get: what the solution imports from these is given.

    Raises:
        CourseError: One is another, or the solution has no such class or function.
    """
    name = f"reference/{folder.name}/solution.py"
    try:
        text = (folder / "solution.py").read_text(encoding="utf-8")
        tree = ast.parse(edition_text(text, edition, name))
    except SyntaxError as error:
        raise CourseError(f"{name}:{error.lineno}: it is not valid Python ({error.msg}). Fix it.") from error
    defined = {**_imported(tree, provided), **{node.name: (name, node) for node in _definitions(tree)}}
    for component in components:
        if component.is_file:
            continue
        where = f"reference/{folder.name}/assignment.toml: component '{component.name}'"
        file, node = defined.get(component.name, (name, None))
        if node is None or not isinstance(node, _KINDS[component.kind]):
            raise CourseError(f"{where}: {name} defines no such {component.kind}. Use one name in both.")
        function = _function(node)
        if function is None:  # a class with the constructor of its base
            continue
        stated, own = _stated(component.signature), list(_parameters(function))
        if stated != own:
            raise CourseError(
                f"{where}: the signature is '{component.signature}', and {file}:{function.lineno} has "
                f"'{', '.join(own)}'. Make them the same."
            )


def _definitions(tree: ast.Module) -> list[Definition]:
    return [node for node in tree.body if isinstance(node, Definition)]


def _imported(tree: ast.Module, provided: Sequence[ProvidedFile]) -> dict[str, tuple[str, Definition]]:
    """What the solution imports from provided modules: name -> (file, definition)."""
    found: dict[str, tuple[str, Definition]] = {}
    modules = {file.name: file.code for file in provided if file.code}
    for statement in tree.body:
        file = f"{statement.module}.py" if isinstance(statement, ast.ImportFrom) else ""
        if not isinstance(statement, ast.ImportFrom) or file not in modules:
            continue
        shown = f"{PROVIDED}/{file}"
        try:
            definitions = {node.name: node for node in _definitions(ast.parse(modules[file]))}
        except SyntaxError as error:
            raise CourseError(
                f"{shown}:{error.lineno}: it is not valid Python ({error.msg}). Fix it."
            ) from error
        for alias in statement.names:
            if alias.name in definitions:
                found[alias.asname or alias.name] = (shown, definitions[alias.name])
    return found


def _function(node: Definition) -> ast.FunctionDef | None:
    if isinstance(node, ast.FunctionDef):
        return node
    return next(
        (each for each in node.body if isinstance(each, ast.FunctionDef) and each.name == _CONSTRUCTOR), None
    )


def _stated(signature: str) -> list[str]:
    stub = ast.parse(f"def stub({signature}): ...").body[0]
    return list(_parameters(stub)) if isinstance(stub, ast.FunctionDef) else []


def _parameters(function: ast.FunctionDef) -> Iterator[str]:
    """Names with their defaults, without `self` and types."""
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    missing = len(positional) - len(arguments.defaults)
    defaults: list[ast.expr | None] = [*[None] * missing, *arguments.defaults]
    for given, default in zip(positional, defaults, strict=True):
        if given.arg != "self":
            yield _written(given.arg, default)
    if arguments.vararg is not None:
        yield f"*{arguments.vararg.arg}"
    elif arguments.kwonlyargs:
        yield "*"
    for given, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        yield _written(given.arg, default)
    if arguments.kwarg is not None:
        yield f"**{arguments.kwarg.arg}"


def _written(name: str, default: ast.expr | None) -> str:
    return name if default is None else f"{name}={ast.unparse(default)}"
