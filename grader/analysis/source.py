"""A submission's file as cells of plain Python, each line where the student wrote it."""

import ast
import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import PurePath

from grader.analysis.decoding import text as decoded_text
from grader.analysis.magics import plain
from grader.analysis.notebook import code_cells, is_notebook
from grader.analysis.repairs import repaired
from grader.domain.errors import SubmissionError
from grader.domain.program import Omission, Place
from grader.domain.quoting import as_code, shortened

MOST_NODES = 250_000  # of the syntax tree; a homework has some 10,000
TOO_LARGE = (
    "holds more code than can be analyzed. Hand in only your own code; data and copies of libraries do not "
    "belong in it."
)
TOO_DEEP = (
    "is nested too deeply to be read (brackets or blocks within each other). Write it in smaller steps."
)
SHOWN = 80


@dataclass(frozen=True)
class Cell:
    """One cell, or a whole script.

    Attributes:
        file: `homework.py` or `cell 4`, as in `Place`.
        text: What the student wrote.
        code: The Python of it, with the same lines: magics set aside, slips of the handout repaired.
        tree: `code`, parsed.
    """

    file: str
    text: str
    code: str
    tree: ast.Module

    @cached_property
    def lines(self) -> list[str]:
        """The lines of `code`."""
        return self.code.split("\n")

    def place(self, line: int) -> Place:
        """A line of the cell."""
        return Place(self.file, line)


@dataclass(frozen=True)
class Source:
    """A submission's code.

    Attributes:
        file: The submitted file's name.
        cells: In order; one for a script.
        omissions: What is not Python, or not correct Python.
        notes: Sentences about how it was read.
        text: Cell or file -> what the student wrote, also where it could not be parsed.
        printed: (cell, what it printed) of a notebook, in order.
    """

    file: str
    cells: tuple[Cell, ...]
    omissions: tuple[Omission, ...]
    notes: tuple[str, ...]
    text: dict[str, str]
    printed: tuple[tuple[str, str], ...] = ()


def source(name: str, data: bytes) -> Source:
    """The cells of a script or a notebook.

    Args:
        name: The submitted file's name, without folders.
        data: Its content.

    Raises:
        SubmissionError: It cannot be read, or nothing in it is correct Python; the sentence says where.
    """
    named_notebook = PurePath(name).suffix.lower() == ".ipynb"
    decoded, notes = decoded_text(name, data, lambda text: named_notebook or _parses(text))
    if named_notebook or is_notebook(decoded):
        raw, more = code_cells(name, decoded)
        if not named_notebook:
            more = (*more, f"{name} is a notebook under another name; it was read as one.")
        assembled = _assembled(name, [(f"cell {cell.number}", cell.text) for cell in raw], (*notes, *more))
        printed = tuple((f"cell {cell.number}", cell.printed) for cell in raw if cell.printed)
        return replace(assembled, printed=printed)
    return _assembled(name, [(name, decoded)], notes)


def _assembled(name: str, raw: list[tuple[str, str]], notes: tuple[str, ...]) -> Source:
    """The cells that parse; the others become omissions."""
    cells: list[Cell] = []
    omissions: list[Omission] = []
    more: list[str] = []
    errors: list[SubmissionError] = []
    aside: list[str] = []
    for file, text in raw:
        try:
            code, lines = _python(file, text)
        except SyntaxError as error:
            errors.append(SubmissionError(_sentence(name, file, text, error)))
            line = min(max(error.lineno or 1, 1), text.count("\n") + 1)
            reason = f"the cell is not correct Python ({_message(error)}) and was left out"
            omissions.append(Omission(Place(file, line), _line(text, line), reason, broken=True))
            continue
        fixed = repaired(file, code, _tree(code))
        more += fixed.notes
        cells.append(Cell(file, text, fixed.code, fixed.tree))
        omissions += lines
        aside += [str(line.place) for line in lines]
    if sum(1 for cell in cells for _ in ast.walk(cell.tree)) > MOST_NODES:
        raise SubmissionError(f"{name}: {TOO_LARGE}")
    if errors and all(isinstance(node, ast.Pass) for cell in cells for node in cell.tree.body):
        raise errors[0]
    if errors:
        more.append(
            f"{len(errors)} of {len(raw)} cells are not correct Python; the rest was graded. {errors[0]}"
        )
    if aside:
        shown = "; ".join(aside[:5]) + ("; ..." if len(aside) > 5 else "")
        more.append(f"Notebook magics and shell commands were not executed ({shown}).")
    return Source(name, tuple(cells), tuple(omissions), (*notes, *more), dict(raw))


def _python(file: str, text: str) -> tuple[str, list[Omission]]:
    """The Python of a cell; magics are looked for only where it does not parse as it is.

    Raises:
        SyntaxError: It does not parse without its magics either.
    """
    try:
        _tree(text)
    except SyntaxError:
        found = plain(text)
        if not found.set_aside:
            raise
        _tree(found.code)
        return found.code, [Omission(Place(file, s.line), s.text[:SHOWN], s.reason) for s in found.set_aside]
    return text, []


def _tree(code: str) -> ast.Module:
    """The parsed code, after Python agreed that it could be compiled (which executes nothing).

    Raises:
        SyntaxError: It is not correct Python.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            tree = ast.parse(code)
            compile(tree, "<submission>", "exec", dont_inherit=True)
        except (ValueError, OverflowError) as error:
            raise SyntaxError(str(error)) from error
        return tree


def _parses(text: str) -> bool:
    try:
        _python("", text)
    except SyntaxError:
        return False
    return True


def _sentence(name: str, file: str, text: str, error: SyntaxError) -> str:
    """What is wrong with a file that does not parse, where, and what to do."""
    line = min(max(error.lineno or 1, 1), text.count("\n") + 1)
    where = f"{name}:{line}" if file == name else f"{name}, {Place(file, line)}"
    return (
        f"{where}: is not correct Python ({_message(error)}): {as_code(_line(text, line))}. "
        "Correct it, run the file once from the top, and hand it in again."
    )


def _message(error: SyntaxError) -> str:
    message = (error.msg or "invalid syntax").split("\n")[0]
    if "Missing parentheses in call to 'print'" in message:
        return "it is Python 2: in Python 3, print needs parentheses"
    return shortened(message, SHOWN)  # Python's own words, with names and signs from the source


def _line(text: str, line: int) -> str:
    lines = text.split("\n")
    return lines[line - 1].strip()[:SHOWN] if 0 < line <= len(lines) else ""
