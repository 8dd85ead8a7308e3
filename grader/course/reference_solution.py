"""Reads the marks in the reference solution, and its signatures.

A mark opens with `# >>> ` and a kind, and closes with `# <<<` at the same indentation:

    # >>> TODO part: what  the student gets `raise NotImplementedError("TODO part: what")`,
                            below the hints, which are the lines `# hint: ...` that follow the mark
    # >>> INSTEAD code      the student gets `code` (several INSTEAD lines in a row: all of them)
    # >>> SOLUTION          left out of the student's file
    # >>> INSTRUCTORS       a note, left out of everything that is made from the solution

The signatures that `assignment.toml` states are compared with those of the solution. Nothing is executed
here, and no file is written.
"""

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from grader.course.course_files import file_text
from grader.course.editions import edition_text, without_left_out
from grader.course.variant_values import filled_code
from grader.domain.assignment import Component
from grader.domain.assignment_files import PROVIDED, ProvidedFile
from grader.domain.assignment_versions import Edition, Value
from grader.domain.errors import CourseError

_OPENING = re.compile(r"\s*# >>>\s*(?P<kind>\w*)(?: (?P<text>.*))?$")
_CLOSING = re.compile(r"\s*# <<<\s*$")
_HINT = re.compile(r"\s*# hint: (?P<text>.+)$")
_TODO = re.compile(r"(?P<place>[A-Za-z_][\w.]*): (?P<what>\S.*)$")
_MARK_KINDS = ("TODO", "INSTEAD", "SOLUTION", "INSTRUCTORS")
_LINE_LENGTH = 110  # beyond it, a stub's `raise` is split into three lines


@dataclass(frozen=True)
class Region:
    """What stands between a mark and its `# <<<`.

    Attributes:
        kind: `TODO`, `INSTEAD`, `SOLUTION` or `INSTRUCTORS`.
        line: The line of the mark, 1-based.
        end: The line of its `# <<<`, 1-based.
        indent: The spaces in front of the mark.
        texts: TODO: (place, what); INSTEAD: the lines of code; otherwise empty.
        hints: The texts of the hints.
        body: The marked lines themselves, unchanged.
    """

    kind: str
    line: int
    end: int
    indent: str
    texts: tuple[str, ...]
    hints: tuple[str, ...]
    body: tuple[str, ...]


def regions(text: str, name: str) -> tuple[Region, ...]:
    """The marked regions of a solution, in order.

    Args:
        text: The solution's source.
        name: Its name, for messages: `reference/vit_defects/solution.py`.

    Raises:
        CourseError: A mark is malformed; the message names the line and the remedy.
    """
    lines = text.split("\n")
    regions_so_far: list[Region] = []
    index = 0
    while index < len(lines):
        if _CLOSING.match(lines[index]):
            raise CourseError(f"{name}:{index + 1}: '# <<<' closes no mark. Remove it, or open one above it.")
        if not lines[index].lstrip().startswith("# >>>"):
            index += 1
            continue
        region = _region(lines, index, name)
        regions_so_far.append(region)
        index = region.end
    _check_places(text, tuple(regions_so_far), name)
    return tuple(regions_so_far)


def homework_source(text: str, name: str, values: Mapping[str, Value] | None = None) -> str:
    """The student's version of a solution: stubs where the marks are.

    Args:
        text: The solution's source.
        name: Its name, for messages.
        values: The drawn values, which are filled in.

    Raises:
        CourseError: A mark is malformed, or what is left is not Python.
    """
    source = _replaced(filled_code(text, values or {}, name), name, _given)
    try:
        ast.parse(source)
    except SyntaxError as error:
        raise CourseError(
            f"{name}: without the marked lines, it is no longer Python ({error.msg}: "
            f"{(error.text or '').strip()!r}). Move the marks so that whole statements are between them."
        ) from None
    return filled_code(source, values or {}, name)  # what stood in an INSTEAD mark is code only now


def solved_source(text: str, name: str, values: Mapping[str, Value] | None = None) -> str:
    """The solution as a student might have written it: everything in place, and no mark or hint.

    Args:
        text: The solution's source.
        name: Its name, for messages.
        values: The drawn values, which are filled in.

    Raises:
        CourseError: A mark is malformed.
    """
    source = filled_code(text, values or {}, name)
    return _replaced(source, name, lambda region: () if region.kind == "INSTRUCTORS" else region.body)


def _region(lines: list[str], start: int, name: str) -> Region:
    """The region whose mark is `lines[start]`."""
    kind, first = _mark(lines[start], start, name)
    texts: list[str] = [first] if kind == "INSTEAD" else []
    hints: list[str] = []
    cursor = start + 1
    if kind == "INSTEAD":
        while (further := _matched(_OPENING, lines, cursor)) and further["kind"] == "INSTEAD":
            texts.append(further["text"] or "")
            cursor += 1
    if kind == "TODO":
        parts = _TODO.match(first)
        if parts is None:
            raise CourseError(
                f"{name}:{start + 1}: a TODO mark names the place and says what to write. "
                f"Write it as '# >>> TODO Class.method: what to write'."
            )
        texts = [parts["place"], parts["what"]]
        while hint := _matched(_HINT, lines, cursor):
            hints.append(hint["text"])
            cursor += 1
    end = cursor
    while end < len(lines) and not _CLOSING.match(lines[end]):
        if lines[end].lstrip().startswith("# >>>"):
            raise CourseError(
                f"{name}:{end + 1}: this mark opens inside the one of line {start + 1}. "
                f"Close that one with '# <<<' first."
            )
        end += 1
    if end == len(lines):
        raise CourseError(f"{name}:{start + 1}: this mark is never closed. Add '# <<<' after its last line.")
    indent = _indent(lines[start])
    if _indent(lines[end]) != indent:
        raise CourseError(
            f"{name}:{end + 1}: '# <<<' is indented differently from its mark in line {start + 1}. "
            f"Indent both alike."
        )
    body = tuple(lines[cursor:end])
    if not any(line.strip() for line in body):
        raise CourseError(
            f"{name}:{start + 1}: there is nothing between this mark and its '# <<<'. Remove both."
        )
    return Region(kind, start + 1, end + 1, indent, tuple(texts), tuple(hints), body)


def _matched(pattern: re.Pattern[str], lines: list[str], index: int) -> re.Match[str] | None:
    return pattern.match(lines[index]) if index < len(lines) else None


def _mark(line: str, index: int, name: str) -> tuple[str, str]:
    """The kind and the text of an opening mark."""
    match = _OPENING.match(line)
    kind = match["kind"] if match else ""
    if match is None or kind not in _MARK_KINDS:
        raise CourseError(
            f"{name}:{index + 1}: '{line.strip()}' is not a mark that we know. "
            f"Begin it with one of: {', '.join(f'# >>> {kind}' for kind in _MARK_KINDS)}."
        )
    return kind, match["text"] or ""


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _check_places(text: str, all_regions: tuple[Region, ...], name: str) -> None:
    """Raises unless every TODO names the function or method that it stands in."""
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        raise CourseError(f"{name}:{error.lineno}: not Python: {error.msg}. Correct the solution.") from None
    spans = _spans(tree, "")
    for region in all_regions:
        if region.kind != "TODO":
            continue
        around = [qualified for qualified, first, last in spans if first <= region.line <= last]
        place = around[-1] if around else "the top level"
        if region.texts[0] != place:
            raise CourseError(
                f"{name}:{region.line}: the mark says '{region.texts[0]}' but stands in {place}. "
                f"Name the function or method that it stands in."
            )


def _spans(node: ast.AST, prefix: str) -> list[tuple[str, int, int]]:
    """(qualified name, first line, last line) of all functions and methods, outer before inner."""
    spans: list[tuple[str, int, int]] = []
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            qualified = f"{prefix}{child.name}"
            if not isinstance(child, ast.ClassDef):
                spans.append((qualified, child.lineno, child.end_lineno or child.lineno))
            spans += _spans(child, f"{qualified}.")
    return spans


def _given(region: Region) -> tuple[str, ...]:
    """What the student gets in place of a region."""
    if region.kind == "INSTEAD":
        return tuple(f"{region.indent}{line}".rstrip() for line in region.texts)
    if region.kind == "TODO":
        place, what = region.texts
        message = f"TODO {place}: {what}".replace("\\", "\\\\").replace('"', '\\"')
        comments = [f"{region.indent}# Hint: {hint}" for hint in region.hints]
        stub = [f'{region.indent}raise NotImplementedError("{message}")']
        if len(stub[0]) > _LINE_LENGTH:
            stub = [
                f"{region.indent}raise NotImplementedError(",
                f'{region.indent}    "{message}"',
                f"{region.indent})",
            ]
        return (*comments, *stub)
    return ()


def _replaced(text: str, name: str, given: Callable[[Region], tuple[str, ...]]) -> str:
    """The text with every region replaced; blank lines around what vanishes are not doubled."""
    lines = text.split("\n")
    out: list[str] = []
    position = 0
    for region in regions(text, name):
        out += lines[position : region.line - 1]
        inserted = given(region)
        out += inserted
        position = region.end
        if not inserted and (not out or not out[-1].strip()):
            while position < len(lines) and not lines[position].strip():
                position += 1
    out += lines[position:]
    return without_left_out("\n".join(out).strip("\n") + "\n")


# --- solution signatures ---------------------------------------------------------------------------------


Definition = ast.ClassDef | ast.FunctionDef

_NODE_KINDS = {"class": ast.ClassDef, "function": ast.FunctionDef}
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
        tree = ast.parse(edition_text(file_text(folder / "solution.py", name), edition, name))
    except SyntaxError as error:
        raise CourseError(f"{name}:{error.lineno}: it is not valid Python ({error.msg}). Fix it.") from error
    defined = {**_imported(tree, provided), **{node.name: (name, node) for node in _definitions(tree)}}
    for component in components:
        if component.is_file:
            continue
        where = f"reference/{folder.name}/assignment.toml: component '{component.name}'"
        file, node = defined.get(component.name, (name, None))
        if node is None or not isinstance(node, _NODE_KINDS[component.kind]):
            raise CourseError(f"{where}: {name} defines no such {component.kind}. Use one name in both.")
        function = _function(node)
        if function is None:  # a class with the constructor of its base
            continue
        stated_parameters, defined_parameters = _stated(component.signature), list(_parameters(function))
        if stated_parameters != defined_parameters:
            raise CourseError(
                f"{where}: the signature is '{component.signature}', and {file}:{function.lineno} has "
                f"'{', '.join(defined_parameters)}'. Make them the same."
            )


def _definitions(tree: ast.Module) -> list[Definition]:
    return [node for node in tree.body if isinstance(node, Definition)]


def _imported(tree: ast.Module, provided: Sequence[ProvidedFile]) -> dict[str, tuple[str, Definition]]:
    """What the solution imports from provided modules: name -> (file, definition)."""
    definition_by_name: dict[str, tuple[str, Definition]] = {}
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
                definition_by_name[alias.asname or alias.name] = (shown, definitions[alias.name])
    return definition_by_name


def _function(node: Definition) -> ast.FunctionDef | None:
    if isinstance(node, ast.FunctionDef):
        return node
    return next(
        (
            statement
            for statement in node.body
            if isinstance(statement, ast.FunctionDef) and statement.name == _CONSTRUCTOR
        ),
        None,
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
    for parameter, default in zip(positional, defaults, strict=True):
        if parameter.arg != "self":
            yield _written(parameter.arg, default)
    if arguments.vararg is not None:
        yield f"*{arguments.vararg.arg}"
    elif arguments.kwonlyargs:
        yield "*"
    for parameter, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        yield _written(parameter.arg, default)
    if arguments.kwarg is not None:
        yield f"**{arguments.kwarg.arg}"


def _written(name: str, default: ast.expr | None) -> str:
    return name if default is None else f"{name}={ast.unparse(default)}"
