"""The student id that a homework's own code states, as `STUDENT_ID = "400101200"`."""

import ast

NAME = "STUDENT_ID"


def written_id(source: str) -> tuple[str, int] | None:
    """The id that Python code gives to `STUDENT_ID` outside of functions, and the line of it.

    Args:
        source: A script, or a cell of a notebook. What is not Python states nothing.

    Returns:
        The last one; None where there is none, or what stands there is no text or number.
    """
    try:
        statements = ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    found = None
    for statement in statements:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=str() | int() as value)):
                if name == NAME and not isinstance(value, bool):
                    found = str(value).strip(), statement.lineno
    return found if found and found[0] else None
