"""Replaces single cells in somebody else's CSV file, and leaves every other byte as it is.

Python's own reader forgets which cells were quoted and how lines ended, so that it would write another
file. Cells are read by RFC 4180, with any line ends, and kept with their positions.
"""

import codecs
import re
from collections.abc import Mapping
from dataclasses import dataclass

from grader.domain.errors import UsageError

DELIMITERS = ",;\t"
_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_QUOTED = re.compile(r'"[^"]*(?:""[^"]*)*"')
_LINE_END = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True)
class Cell:
    """A cell: its text, and its position in the file's text."""

    text: str
    start: int
    end: int
    quoted: bool


@dataclass(frozen=True)
class CsvText:
    """A file as read.

    Attributes:
        name: The file's name, for messages.
        bom: The byte order mark at its beginning, or nothing.
        codec: Its encoding.
        text: All of it, without the byte order mark.
        rows: Its rows, the header first: row 1 of a spreadsheet is `rows[0]`.
    """

    name: str
    bom: bytes
    codec: str
    text: str
    delimiter: str
    rows: tuple[tuple[Cell, ...], ...]

    @property
    def header(self) -> tuple[str, ...]:
        """The names of the columns, without surrounding space."""
        return tuple(cell.text.strip() for cell in self.rows[0])

    def cell(self, row: int, column: int) -> str:
        """The text of a cell, without surrounding space; empty if the row is too short."""
        cells = self.rows[row]
        return cells[column].text.strip() if column < len(cells) else ""

    def is_blank(self, row: int) -> bool:
        """Whether all cells of a row are blank."""
        return not any(cell.text.strip() for cell in self.rows[row])

    def with_cells(self, changes: Mapping[tuple[int, int], str]) -> bytes:
        """The file with other texts in some cells.

        Args:
            changes: (row, column) -> text, counted from 0. A cell that was quoted stays quoted.

        Raises:
            UsageError: A row is too short for its cell.
        """
        pieces, copied_to = [], 0
        for (row, column), text in sorted(changes.items()):
            if len(self.rows[row]) != len(self.rows[0]):
                raise UsageError(
                    f"{self.name}, row {row + 1}: has {len(self.rows[row])} cells, the first row "
                    f"{len(self.rows[0])}. Download the file again."
                )
            cell = self.rows[row][column]
            pieces += [self.text[copied_to : cell.start], self._written(text, cell.quoted)]
            copied_to = cell.end
        return self.bom + "".join([*pieces, self.text[copied_to:]]).encode(self.codec)

    def _written(self, text: str, quoted: bool) -> str:
        if quoted or any(special in text for special in (self.delimiter, '"', "\r", "\n")):
            return '"' + text.replace('"', '""') + '"'
        return text


def csv_text(name: str, content: bytes, *, one_column: bool = False) -> CsvText:
    """A CSV file, read so that it can be written again exactly.

    The delimiter is the first character of the text that can be one: no LMS has such a character in the name
    of its first column.

    Args:
        name: The file's name, for messages.
        content: The file.
        one_column: Whether a table with a single column, which has no delimiter, is accepted.

    Raises:
        UsageError: It is not such a file.
    """
    bom, codec = next(((bom, codec) for bom, codec in _BOMS if content.startswith(bom)), (b"", "utf-8"))
    try:
        text = content[len(bom) :].decode(codec)
    except UnicodeDecodeError:
        raise UsageError(
            f"{name} is not UTF-8 text, so another program saved it since. Download it again."
        ) from None
    first_delimiter = re.search(f"[{DELIMITERS}]", text)
    if (first_delimiter is None and not (one_column and text.strip())) or "\0" in text:
        raise UsageError(f"{name} is not a CSV table. Give the file as the LMS made it.")
    delimiter = first_delimiter[0] if first_delimiter else DELIMITERS[0]
    return CsvText(name, bom, codec, text, delimiter, _rows(name, text, delimiter))


def _rows(name: str, text: str, delimiter: str) -> tuple[tuple[Cell, ...], ...]:
    plain = re.compile(f"[^{delimiter}\r\n]*")
    rows: list[tuple[Cell, ...]] = []
    cells: list[Cell] = []
    position = 0
    while position < len(text) or cells:
        cell = _cell(text, position, plain)
        cells.append(cell)
        position = cell.end
        if text.startswith(delimiter, position):
            position += 1
            continue
        line_end = _LINE_END.match(text, position)
        if line_end is None and position < len(text):
            raise UsageError(
                f"{name}, row {len(rows) + 1}: a quotation mark has no closing one as CSV requires. "
                "Download the file again."
            )
        rows.append(tuple(cells))
        cells = []
        position = line_end.end() if line_end else position
    return tuple(rows)


def _cell(text: str, position: int, plain: re.Pattern[str]) -> Cell:
    match = _QUOTED.match(text, position)
    if match is not None:
        return Cell(match[0][1:-1].replace('""', '"'), position, match.end(), quoted=True)
    match = plain.match(text, position)
    assert match is not None, "the pattern also matches the empty text"
    # an opening quotation mark without a closing one is not a cell
    end = position if match[0].startswith('"') else match.end()
    return Cell(text[position:end], position, end, quoted=False)
