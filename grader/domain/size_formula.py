"""Formulas of whole numbers by which a question computes a size: `(image_size // patch_size) ** 2 + 1`.

The formula is an instructor's, and the numbers in it are a student's. It has the operators `+ - * // % **`,
whole numbers, names and parentheses; nothing else is evaluated, and no result is larger than MOST.
"""

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass

MOST = 10**15
_MOST_POWER = 8
_OPERATORS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: lambda left, right: left + right,
    ast.Sub: lambda left, right: left - right,
    ast.Mult: lambda left, right: left * right,
    ast.FloorDiv: lambda left, right: left // right,
    ast.Mod: lambda left, right: left % right,
    ast.Pow: lambda left, right: left**right,
}


@dataclass(frozen=True)
class SizeFormula:
    """A formula that was read.

    Attributes:
        text: As the instructor wrote it.
        names: The names in it, sorted.
    """

    text: str
    names: tuple[str, ...]

    @classmethod
    def read(cls, text: str) -> "SizeFormula":
        """The formula in a text.

        Raises:
            ValueError: It is not one; the message says what is wrong, as a clause.
        """
        try:
            tree = ast.parse(text.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise ValueError("it is not a formula") from None
        names = set()
        for node in ast.walk(tree):
            match node:
                case ast.Name(id=name):
                    names.add(name)
                case ast.Constant(value=int(number)) if not isinstance(number, bool):
                    pass
                case ast.BinOp(op=operator) if type(operator) in _OPERATORS:
                    pass
                case ast.expr():
                    raise ValueError(
                        f"'{ast.unparse(node)}' is none of a whole number, a name and + - * // % **"
                    )
        return cls(text, tuple(sorted(names)))

    def value(self, numbers: Mapping[str, int]) -> int | None:
        """The result; None if a number is missing, if it is divided by 0, or if a result is beyond MOST.

        Args:
            numbers: Name -> the number in its place.
        """
        return _value(ast.parse(self.text.strip(), mode="eval").body, numbers)


def _value(node: ast.expr, numbers: Mapping[str, int]) -> int | None:
    if isinstance(node, ast.Name):
        return numbers.get(node.id)
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    if not isinstance(node, ast.BinOp):
        return None
    left, right = _value(node.left, numbers), _value(node.right, numbers)
    if left is None or right is None or max(abs(left), abs(right)) > MOST:
        return None
    if isinstance(node.op, ast.FloorDiv | ast.Mod) and right == 0:
        return None
    if isinstance(node.op, ast.Pow) and not 0 <= right <= _MOST_POWER:
        return None
    result = _OPERATORS[type(node.op)](left, right)
    return result if abs(result) <= MOST else None
