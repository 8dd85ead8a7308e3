"""Functions that hold what they need in their own code, where a student's code does not reach it unseen.

What a function finds in a closure, in its globals or in an object, other code of the same process can find
and change. The constants of its code cannot be changed, and Python raises an audit event before it lets
anybody read `__code__`, see a frame, or ask the collector for objects: `prying` hears it.
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
