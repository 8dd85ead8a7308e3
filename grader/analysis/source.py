"""Source files as cells of plain Python: decoded, repaired, each line where the student wrote it.

This module decides which encoding a file has and which cells are Python. A cell that is not Python is left
out alone and listed; where none is left, or there is too much code, it raises one sentence. Known slips
from the handout (`Resize(28, 28)`, `parse_args()`) are repaired with a note, and nothing else ever is.
`joining` decides which files belong to the program, and `slicing` which parts of it are executed.

Tests: tests/analysis/test_hostile_sources.py, tests/analysis/test_source_reading.py
"""

import ast
import codecs
import io
import tokenize
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import PurePath

from grader.analysis.joining import OwnModule, joined, own_module
from grader.analysis.notebook import code_cells, is_notebook
from grader.analysis.notebook_commands import plain, run_file, without_checks, written_file
from grader.analysis.syntax_trees import walk
from grader.analysis.units import Cell
from grader.domain.analyzed_program import Omission, Place
from grader.domain.errors import SubmissionError
from grader.domain.formatting import as_code, listed, shortened

REMEDY = "Open it in an editor, and choose 'Save with encoding: UTF-8' before you hand it in."
WINDOWS = ("cp1252", "latin-1")


def decoded_text(name: str, data: bytes, readable: Callable[[str], bool]) -> tuple[str, tuple[str, ...]]:
    """The text of a file, and notes about how it was read.

    The order is: UTF-16 by its mark, UTF-8 with or without a mark, what a coding line declares, then Windows
    encodings if the text makes sense in them.

    Args:
        name: The file's name, for messages.
        data: Its content.
        readable: Whether a text makes sense (it parses): the proof for an encoding that takes any bytes.

    Raises:
        SubmissionError: The file is empty, holds NUL bytes, or its encoding could not be determined.
    """
    if not data.strip():
        raise SubmissionError(f"{name}: is empty. Save your work into it before you hand it in.")
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        decoded = _decoded(data, "utf-16")
        if decoded is None or "\0" in decoded:
            raise SubmissionError(f"{name}: begins like UTF-16 but cannot be read as it. {REMEDY}")
        return _lines(decoded), (f"{name} is saved as UTF-16; it was read all the same. Save it as UTF-8.",)
    if b"\0" in data:
        raise SubmissionError(
            f"{name}: holds NUL bytes, so it is not a text file (perhaps it was damaged). {REMEDY}"
        )
    decoded = _decoded(data, "utf-8-sig")
    if decoded is not None:
        return _lines(decoded), ()
    declared = _declared(data)
    if declared is not None and (decoded := _decoded(data, declared)) is not None:
        return _lines(decoded), ()
    for encoding in WINDOWS:
        decoded = _decoded(data, encoding)
        if decoded is not None and readable(_lines(decoded)):
            note = f"{name} is not saved as UTF-8; it was read as {encoding}. Save it as UTF-8."
            return _lines(decoded), (note,)
    raise SubmissionError(f"{name}: is not saved as UTF-8 and cannot be read. {REMEDY}")


def _decoded(data: bytes, encoding: str) -> str | None:
    try:
        return data.decode(encoding)
    except (UnicodeError, LookupError):
        return None


def _declared(data: bytes) -> str | None:
    """The encoding that a coding line declares (PEP 263), if it is a text encoding."""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        codec = codecs.lookup(encoding)
    except (SyntaxError, LookupError):
        return None
    return codec.name if getattr(codec, "_is_text_encoding", True) else None


def _lines(decoded: str) -> str:
    """The text with `\\n` between lines, as the parser counts them."""
    return decoded.replace("\r\n", "\n").replace("\r", "\n")


# --- repairs ---------------------------------------------------------------------------------------------


LARGEST_INTERPOLATION = 5  # torchvision's old integers for interpolation go from 0 to 5


@dataclass(frozen=True)
class Repaired:
    """The code after repairs, parsed, and a sentence for each repair."""

    code: str
    tree: ast.Module
    notes: tuple[str, ...]


@dataclass(frozen=True)
class _Edit:
    """Text to insert at a line (1-based) and a column (in bytes of UTF-8, 0-based)."""

    line: int
    column: int
    text: str


def repaired(file: str, code: str, tree: ast.Module) -> Repaired:
    """`code` with the known slips repaired.

    `Resize(28, 28)` becomes `Resize((28, 28))`: the second argument would be an interpolation, and it
    raises. `parser.parse_args()` becomes `parser.parse_args([])`: there is no command line here.

    Args:
        file: As in `Place`.
        code: A cell of Python.
        tree: The same, parsed.
    """
    edits: list[_Edit] = []
    notes: list[str] = []
    for node in walk(tree):
        if not isinstance(node, ast.Call) or node.keywords:
            continue
        name = _last_name(node.func)
        place = Place(file, node.lineno)
        if name == "Resize" and _is_size_pair(node.args):
            height, width = node.args
            edits.append(_Edit(height.lineno, height.col_offset, "("))
            edits.append(_Edit(width.end_lineno or 0, width.end_col_offset or 0, ")"))
            pair = f"{ast.unparse(height)}, {ast.unparse(width)}"
            was, reads = as_code(f"Resize({pair})"), as_code(f"Resize(({pair}))")
            notes.append(f"{place}: {was} was read as {reads}.")
        elif name in ("parse_args", "parse_known_args") and not node.args:
            edits.append(_Edit(node.end_lineno or 0, (node.end_col_offset or 1) - 1, "[]"))
            notes.append(f"{place}: {name}() was read as {name}([]): the defaults count.")
    if not edits:
        return Repaired(code, tree, ())
    edited = _edited(code, edits)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Repaired(edited, ast.parse(edited), tuple(notes))


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _is_size_pair(args: list[ast.expr]) -> bool:
    """Whether two arguments are a height and a width rather than a size and an interpolation."""
    if len(args) != 2 or any(isinstance(arg, ast.Starred) for arg in args):
        return False
    first, second = args
    if isinstance(first, ast.Constant) and isinstance(second, ast.Constant):
        return (
            isinstance(first.value, int)
            and isinstance(second.value, int)
            and second.value > LARGEST_INTERPOLATION
        )
    return isinstance(first, ast.Name | ast.Attribute) and ast.dump(first) == ast.dump(second)


def _edited(code: str, edits: list[_Edit]) -> str:
    lines = code.split("\n")
    for edit in sorted(edits, key=lambda edit: (edit.line, edit.column), reverse=True):
        line = lines[edit.line - 1].encode("utf-8")
        lines[edit.line - 1] = (line[: edit.column] + edit.text.encode() + line[edit.column :]).decode(
            "utf-8"
        )
    return "\n".join(lines)


# --- source ----------------------------------------------------------------------------------------------


MOST_NODES = 250_000  # of the syntax tree; a homework has some 10,000
TOO_LARGE = (
    "holds more code than can be analyzed. Hand in only your own code; data and copies of libraries do not "
    "belong in it."
)
TOO_DEEP = (
    "is nested too deeply to be read (brackets or blocks inside one another). Write it in smaller steps."
)
SHOWN = 80


@dataclass(frozen=True)
class Source:
    """A submission's code.

    Attributes:
        file: The submitted file's name.
        cells: In order; one for a script.
        omissions: The parts that are not Python, or not correct Python.
        notes: Sentences about how it was read.
        text: Cell or file -> what the student wrote, even if it could not be parsed.
        printed: (cell, what it printed) of a notebook, in order.
        modules: The keys of `text` that are modules of the student's own, as far as they are imported.
    """

    file: str
    cells: tuple[Cell, ...]
    omissions: tuple[Omission, ...]
    notes: tuple[str, ...]
    text: dict[str, str]
    printed: tuple[tuple[str, str], ...] = ()
    modules: tuple[str, ...] = ()


def source(
    name: str,
    data: bytes,
    modules: Mapping[str, bytes] | None = None,
    *,
    given: Mapping[str, bytes] | None = None,
    executed: bool = False,
) -> Source:
    """The cells of a script or a notebook, with those of the modules that it imports.

    Args:
        name: The submitted file's name, without folders.
        data: Its content.
        modules: Python files beside it: name, with the folders before it -> content.
        given: Modules that the course hands out: no file of the student's takes their place.
        executed: The data are what a kernel executed: see `executed_notebook`.

    Raises:
        SubmissionError: It cannot be read, or nothing in it is correct Python; the sentence says where.
    """
    named_notebook = PurePath(name).suffix.lower() == ".ipynb"
    decoded, notes = decoded_text(name, data, lambda text: named_notebook or _parses(text))
    beside = {**(modules or {}), **(given or {})}
    files = {file: (file, _module_text(file, content)) for file, content in beside.items()}
    if named_notebook or is_notebook(decoded):
        raw, notebook_notes = code_cells(name, decoded, executed=executed)
        if not named_notebook:
            notebook_notes = (
                *notebook_notes,
                f"{name} is a notebook under another name; it was read as one.",
            )
        cells = {cell.name: cell.text for cell in raw}
        for file, text in list(cells.items()):
            if (written := written_file(text)) is not None and written.name not in (given or {}):
                # the cell's own first line stays, blank, so that line numbers are those of the cell
                files[written.name] = (
                    file,
                    (files[written.name][1] if written.appends else "") + written.code,
                )
        assembled = _assembled(name, list(cells.items()), (*notes, *notebook_notes), files)
        printed = tuple((cell.name, cell.printed) for cell in raw if cell.printed)
        return replace(assembled, printed=printed)
    return _assembled(name, [(name, decoded)], notes, files)


def _module_text(file: str, content: bytes) -> str:
    try:
        return decoded_text(file, content, _parses)[0]
    except SubmissionError:
        return ""


class _Reading:
    """Collects the cells that parse; the others become omissions."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.cells: list[Cell] = []
        self.omissions: list[Omission] = []
        self.notes: list[str] = []
        self.errors: list[SubmissionError] = []
        self.aside: list[Omission] = []

    def cell(self, file: str, text: str, module_names: Iterable[str] = ()) -> Cell | None:
        """The cell; None if it is not Python."""
        try:
            code, set_aside = _python(file, text, module_names)
        except SyntaxError as error:
            self.errors.append(SubmissionError(_sentence(self.name, file, text, error)))
            line = min(max(error.lineno or 1, 1), text.count("\n") + 1)
            file_or_cell = "file" if file.endswith(".py") else "cell"
            reason = f"the {file_or_cell} is not correct Python ({_message(error)}) and was left out"
            self.omissions.append(Omission(Place(file, line), _line(text, line), reason, broken=True))
            return None
        fixed = repaired(file, code, _tree(code))
        self.notes += fixed.notes
        self.aside += set_aside
        return Cell(file, text, fixed.code, fixed.tree)


def _assembled(
    name: str, raw: list[tuple[str, str]], notes: tuple[str, ...], files: Mapping[str, tuple[str, str]]
) -> Source:
    """The program of cells and modules.

    Args:
        raw: (file, text) of each cell.
        files: Name of a module -> the file or cell that holds it, and its text.
    """
    reading, beside = _Reading(name), _Reading(name)
    cells = [cell for file, text in raw if (cell := reading.cell(file, text, files)) is not None]
    cells = list(without_checks(cells))
    run = {module for _, text in raw for line in text.split("\n") if (module := run_file(line, files))}
    modules: list[OwnModule] = []
    for module, (file, text) in files.items():
        if (cell := beside.cell(file, text)) is not None:
            modules.append(own_module(module, cell, run=module in run))
    program = joined(cells, modules)
    if sum(1 for cell in program.cells for _ in ast.walk(cell.tree)) > MOST_NODES:
        raise SubmissionError(f"{name}: {TOO_LARGE}")
    errors = reading.errors
    if errors and all(isinstance(node, ast.Pass) for cell in cells for node in cell.tree.body):
        raise errors[0]
    sentences = [*notes, *reading.notes]
    if errors:
        sentences.append(
            f"{len(errors)} of {len(raw)} cells are not correct Python; the rest was graded. {errors[0]}"
        )
    sentences += [str(error) for error in beside.errors]
    aside = [line for line in reading.aside if line.place.file not in program.used]
    if aside:
        places = [str(line.place) for line in aside]
        first = "; ".join(places[:5]) + ("; ..." if len(places) > 5 else "")
        sentences.append(f"Notebook magics and shell commands were not executed ({first}).")
    if program.used:
        named = [as_code(file) for file in program.used]
        sentences.append(
            f"{listed(named)} belong{'s' if len(program.used) == 1 else ''} to it through an import."
        )
    broken = [omission for omission in beside.omissions if omission.broken]
    shown = {*program.used, *(omission.place.file for omission in broken)}
    return Source(
        name,
        program.cells,
        (*reading.omissions, *aside, *broken),
        tuple(sentences),
        dict(raw) | {file: text for file, text in files.values() if file in shown},
        modules=program.used,
    )


def _python(file: str, text: str, module_names: Iterable[str] = ()) -> tuple[str, list[Omission]]:
    """The Python of a cell; magics are only looked for if it does not parse as it is.

    Args:
        module_names: Names of modules: `%run helpers.py` imports all that is in one.

    Raises:
        SyntaxError: It does not parse even without its magics.
    """
    try:
        _tree(text)
    except SyntaxError:
        cleaned = plain(text, module_names)
        if cleaned.code == text:
            raise
        _tree(cleaned.code)
        return cleaned.code, [
            Omission(Place(file, s.line), s.text[:SHOWN], s.reason) for s in cleaned.set_aside
        ]
    return text, []


def _tree(code: str) -> ast.Module:
    """The parsed code, once Python agrees that it can be compiled (which executes nothing).

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
        "Correct it, and run the file once from the top before you hand it in."
    )


def _message(error: SyntaxError) -> str:
    message = (error.msg or "invalid syntax").split("\n")[0]
    if "Missing parentheses in call to 'print'" in message:
        return "it is Python 2: in Python 3, print needs parentheses"
    return shortened(message, SHOWN)  # Python's own words, with names and signs from the source


def _line(text: str, line: int) -> str:
    lines = text.split("\n")
    return lines[line - 1].strip()[:SHOWN] if 0 < line <= len(lines) else ""
