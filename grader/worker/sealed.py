"""Sealed functions: they hold what they need in their own code, where student code cannot reach it unseen.

Other code of the process can find and change what stands in a closure, in globals or in an object. Constants
of code cannot be changed, and Python raises an audit event before anybody reads `__code__`, sees a frame or
asks the collector: `prying` hears it. `telling`, `voice` and `prying` decide what is sealed.

Tests: tests/worker/test_sealed.py, tests/worker/test_watch.py
"""

import builtins
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any

MARK = "sealed:"  # begins the constants of a template that are to be replaced
FILE = "watched:"  # begins the file name of sealed code
# sealed code looks nothing up; what is written in C and imports something within it looks for `__import__`
_GLOBALS: dict[str, Any] = {"__builtins__": builtins}


def sealed(template: Callable[..., Any], file: str, **values: Any) -> FunctionType:
    """A function made of a template's code.

    Args:
        template: A plain function without free variables, which uses nothing but its arguments, its locals,
            and constants such as `"sealed:write"`.
        file: What comes after `watched:` in the name of its file.
        values: What stands for the constants.
    """
    return FunctionType(sealed_code(template, file, **values), _GLOBALS)


def sealed_code(template: Callable[..., Any], file: str, **values: Any) -> CodeType:
    """The code of such a function.

    Raises:
        ValueError: The template looks something up, or has no such constant, or another one.
    """
    code: CodeType = template.__code__  # type: ignore[attr-defined]
    wanted = {value for value in code.co_consts if isinstance(value, str) and value.startswith(MARK)}
    if code.co_freevars or wanted != {MARK + name for name in values}:
        raise ValueError(f"{code.co_name} cannot be sealed with {sorted(values)}")
    constants = tuple(
        values[value.removeprefix(MARK)] if isinstance(value, str) and value in wanted else value
        for value in code.co_consts
    )
    return code.replace(co_consts=constants, co_filename=FILE + file)
