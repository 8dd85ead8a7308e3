"""Reads and writes sheets that people fill in: CSV for any program, or a spreadsheet."""

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from grader.decisions.mark_entries import COLUMNS, FILLED, NEEDED, MarkRow
from grader.domain.errors import UsageError
from grader.domain.formatting import points, printable
from grader.files import atomic
from grader.files.file_names import guarded
from grader.files.workbooks import opened_workbook

Value = str | float | None
"""What a cell holds."""

SUFFIXES = (".csv", ".xlsx")
_OTHER_SPREADSHEETS = (".ods", ".fods", ".xls", ".xlsm", ".xlsb", ".numbers")
_DELIMITERS = ",;\t"  # programs use the semicolon where numbers have decimal commas
_WIDTHS = {
    "title": 44,
    "comment": 50,
    "comment_ids": 22,
    "hyperparameters": 44,
    "note": 30,
    "student_id": 14,
    "answer": 60,
    "reason": 60,
}
LINKS = ("report", "answers")  # columns of addresses
_BOMS = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}


_NOT_STORED = (
    "it holds a formula whose value is not stored. Write the value, or save the file in Excel or LibreOffice"
)
_NO_VALUE = "it holds a formula that gives an error. Correct it, or write the value"
_DATE = (
    "it holds a date, which the spreadsheet may have made of what was typed. Format the cell as text, and "
    "write it there again"
)
_PERCENTAGE = (
    "it holds {percentage:g}%, which the spreadsheet stores as {stored:g}. Write a number, in a cell that is "
    "formatted as one"
)
_LITERAL = re.compile(r'"[^"]*"|[\\_*].')  # in a number format: what is shown as it is, or fills space


@dataclass(frozen=True)
class _Cell:
    """A cell as text, or what is wrong with it."""

    text: str
    fault: str = ""


@dataclass(frozen=True)
class SheetRow:
    """A row as read.

    Attributes:
        place: The file's name and the row, as a spreadsheet counts: `marks.csv, row 3`.
        cells: Column -> text, without surrounding space.
        sheet: The file's name.
        faults: Column -> what is wrong with a cell that holds neither text nor a number, or a percentage.
    """

    place: str
    cells: dict[str, str]
    sheet: str
    faults: Mapping[str, str] = field(default_factory=dict)


def write_sheet(path: Path, rows: Sequence[MarkRow], names: Mapping[str, str] | None = None) -> None:
    """Write rows as a marking sheet.

    Args:
        path: Ends with `.csv` or `.xlsx`.
        names: Student's id -> name, for a last column; by default there is none, and the sheet is blind.

    Raises:
        UsageError: The path ends differently, or cannot be written.
    """
    table: list[list[Value]] = [[*COLUMNS]]
    table += [[_cell(row, column) for column in COLUMNS] for row in rows]
    if names is not None:
        last = ["name", *(guarded(printable(names.get(row.student_id, ""))) for row in rows)]
        table = [[*cells, name] for cells, name in zip(table, last, strict=True)]
    write_table(path, table, FILLED)


def write_table(path: Path, table: Sequence[Sequence[Value]], filled: Sequence[str]) -> None:
    """Write a table that people fill in.

    Args:
        path: Ends with `.csv` or `.xlsx`.
        table: The names of the columns, then the rows; texts are written as they are.
        filled: The columns to be filled in.

    Raises:
        UsageError: The path ends differently, or cannot be written.
    """
    require_sheet(path)
    if not path.parent.is_dir():
        raise UsageError(f"{path.parent} is not a folder. Create it, or write the sheet elsewhere.")
    atomic.write(path, _csv(table) if path.suffix.lower() == ".csv" else _workbook(table, filled))


def read_sheet(
    path: Path, needed: Sequence[str] = NEEDED, origin: str = "`grader marks export` wrote it"
) -> list[SheetRow]:
    """The rows of a sheet, without empty ones.

    Args:
        needed: The columns that must be there.
        origin: Where the first row is as it should be, as a clause.

    Raises:
        UsageError: It cannot be read, or a column is missing.
    """
    _require_readable(path)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror}). Give another file.") from None
    table = _read_csv(path, content) if path.suffix.lower() == ".csv" else _read_workbook(path, content)
    header = [cell.text.strip().lower() for cell in next(table, [])]
    for column in needed:
        if header.count(column) != 1:
            problem = "twice" if column in header else "missing"
            raise UsageError(
                f"{path.name}, row 1: the column '{column}' is {problem}. Keep the first row as {origin}."
            )
    rows = []
    for number, cells in enumerate(table, 2):
        cell_by_column = {column: cell for column, cell in zip(header, cells, strict=False) if column}
        texts = {
            **dict.fromkeys(header, ""),
            **{column: cell.text.strip() for column, cell in cell_by_column.items()},
        }
        faults = {column: cell.fault for column, cell in cell_by_column.items() if cell.fault}
        if faults or any(texts.values()):
            rows.append(SheetRow(f"{path.name}, row {number}", texts, path.name, faults))
    return rows


def require_sheet(path: Path) -> None:
    """Refuse a path that does not have the name of a sheet.

    Raises:
        UsageError: It ends with neither `.csv` nor `.xlsx`.
    """
    if path.suffix.lower() not in SUFFIXES:
        raise UsageError(f"{path.name}: a sheet ends with .csv or .xlsx. Give it such a name.")


def _require_readable(path: Path) -> None:
    if path.suffix.lower() in _OTHER_SPREADSHEETS:
        raise UsageError(
            f"{path.name}: only .xlsx and .csv are read. Save it as .xlsx in your spreadsheet program "
            "(in LibreOffice: File, Save As, Excel 2007-365)."
        )
    require_sheet(path)


def _cell(row: MarkRow, column: str) -> Value:
    values: dict[str, Value] = {
        "student_id": row.student_id,
        "item": row.target,
        "title": row.title,
        "max": row.maximum,
        "points": row.mark.points,
        "comment": row.mark.comment,
        "comment_ids": " ".join(row.mark.remarks),
        "marked_by": row.marked_by,
        "report": row.report,
        "answers": row.answers,
        "exported": row.exported,
        **row.evidence,
    }
    value = values[column]
    return guarded(printable(value)) if isinstance(value, str) else value


def _csv(table: Sequence[Sequence[Value]]) -> bytes:
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    for row in table:
        writer.writerow(
            ["" if cell is None else cell if isinstance(cell, str) else points(cell) for cell in row]
        )
    return buffer.getvalue().encode("utf-8-sig")  # without the mark, Excel assumes a legacy encoding


def _workbook(table: Sequence[Sequence[Value]], filled_columns: Sequence[str]) -> bytes:
    from openpyxl import Workbook
    from openpyxl.styles import Alignment, Font, PatternFill
    from openpyxl.utils import get_column_letter

    book = Workbook()
    sheet = book.active
    sheet.title = "marks"
    for row in table:
        sheet.append(row)
    columns = list(map(str, table[0]))
    filled = [columns.index(column) + 1 for column in filled_columns]
    for row in sheet.iter_rows(min_row=2):
        for cell in row:
            if isinstance(cell.value, str):
                cell.data_type = "s"  # never a formula
            cell.alignment = Alignment(vertical="top", wrap_text=cell.column in filled)
            if cell.column in filled:
                cell.fill = PatternFill("solid", fgColor="FFF7E0")
        for link in (row[columns.index(column)] for column in LINKS if column in columns):
            if link.value:
                link.hyperlink = link.value
                link.style = "Hyperlink"
    for number, column in enumerate(columns, 1):
        sheet.cell(1, number).font = Font(bold=True)
        sheet.column_dimensions[get_column_letter(number)].width = _WIDTHS.get(column, 12)
    sheet.freeze_panes = "C2"
    _bound_points(sheet, columns, len(table) - 1)
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()


def _bound_points(sheet: Any, columns: Sequence[str], count: int) -> None:
    """Let the spreadsheet itself refuse points beyond the maximum."""
    from openpyxl.utils import get_column_letter
    from openpyxl.worksheet.datavalidation import DataValidation

    if not count:
        return
    cell, most = (get_column_letter(columns.index(column) + 1) for column in ("points", "max"))
    rule = DataValidation("decimal", operator="between", formula1="0", formula2=f"${most}2", allow_blank=True)
    rule.error = "The points are from 0 to the item's maximum."
    sheet.add_data_validation(rule)
    rule.add(f"{cell}2:{cell}{count + 1}")


def _read_csv(path: Path, content: bytes) -> Iterator[list[_Cell]]:
    try:
        text = content.decode(_BOMS.get(content[:2], "utf-8-sig"))
    except UnicodeDecodeError:
        raise UsageError(f"{path.name} is not UTF-8 text. Save it as `CSV UTF-8`, or as .xlsx.") from None
    first = text.partition("\n")[0]
    delimiter = max(_DELIMITERS, key=first.count)
    try:
        for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter):
            yield [_Cell(cell) for cell in row]
    except csv.Error as error:
        raise UsageError(f"{path.name} is not a CSV table ({error}). Save it again as `CSV UTF-8`.") from None


def _read_workbook(path: Path, content: bytes) -> Iterator[list[_Cell]]:
    try:
        # the values of formulas when the file was saved, and the formulas themselves
        values, formulas = (opened_workbook(content, values=only) for only in (True, False))
    except ValueError:
        raise UsageError(
            f"{path.name} is not a spreadsheet that can be read. Save it again as .xlsx."
        ) from None
    formula_sheet = formulas.worksheets[0]
    for row in values.worksheets[0].iter_rows():
        yield [_cell_read(cell, formula_sheet.cell(cell.row, cell.column)) for cell in row]


def _cell_read(value: Any, held: Any) -> _Cell:
    """A cell of a workbook.

    Args:
        value: The cell with the value of its formula, and `held` with the formula.
    """
    if value.data_type == "e":
        return _Cell("", _NO_VALUE)
    if held.data_type == "f" and value.value is None and value.data_type != "str":
        return _Cell("", _NOT_STORED)  # a formula with an empty text as its value has `str`
    if value.data_type == "d":
        return _Cell("", _DATE)
    if value.data_type == "n" and value.value is not None and "%" in _LITERAL.sub("", value.number_format):
        share = float(value.value)
        return _Cell("", _PERCENTAGE.format(percentage=100 * share, stored=share))
    return _Cell(_text(value.value))


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))  # an id that the spreadsheet took for a number
    return str(value).replace("_x000D_", "")
