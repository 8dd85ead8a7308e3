"""Hints in the student's own names, so that what they say can be pasted.

It goes by imports and by assignments in the component. Where the file shows no name, or several, the usual
name stays. The check or the known mistake decides which hint is given.

Tests: tests/judge/test_own_names.py
"""

import ast
import functools
import re
from collections.abc import Iterator

from grader.domain.program import Program
from grader.judge.code_pattern import bound_names, code_pattern

_PLACEHOLDER = re.compile(r"\{(?P<usual>\w+) = (?P<what>[^{}]+)\}")


def with_own_names(text: str, program: Program, component: str) -> str:
    """A text whose placeholders are filled with the student's own names.

    `{F = torch.nn.functional}` becomes the name by which the file has that module. `{stopping =
    EarlyStopping()}` becomes the name to which such an expression is assigned in the component, if it is one
    name only. Where the file says neither, the usual name before the sign stays.

    Args:
        component: In which assignments are looked for.
    """
    return _PLACEHOLDER.sub(
        lambda match: _own_name(match["what"], program, component) or match["usual"], text
    )


def _own_name(what: str, program: Program, component: str) -> str:
    if re.fullmatch(r"\w+(\.\w+)*", what):
        return _modules(tuple(each.source for each in program.statements if each.kind == "import"), what)
    sources = [each.source for each in program.statements if component in each.binds]
    names = {name for source in sources for name in bound_names(source, code_pattern(what))}
    return names.pop() if len(names) == 1 else ""


@functools.lru_cache(maxsize=64)
def _modules(imports: tuple[str, ...], module: str) -> str:
    """The shortest expression by which imports give a module; empty where they do not."""
    found = [
        own + module[len(full) :] for full, own in _imported(imports) if f"{module}.".startswith(f"{full}.")
    ]
    return min(found, key=len, default="")


def _imported(imports: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """(Module, how it is called) of import statements."""
    for node in (one for source in imports for one in ast.walk(ast.parse(source))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                yield (alias.name, alias.asname) if alias.asname else (top, top)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                yield f"{node.module}.{alias.name}", alias.asname or alias.name
