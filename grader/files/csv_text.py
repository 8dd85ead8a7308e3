"""A CSV file of somebody else's, in which single cells are replaced and every other byte stays as it is.

Python's own reader forgets which cells were quoted and how lines ended, so that what it writes again is
another file. Cells are read as RFC 4180 has it, with any of the line ends, and kept with their places.
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
    """A cell: what it says, and where it stands in the text."""

    text: str
    start: int
    end: int
    quoted: bool


@dataclass(frozen=True)
class CsvText:
    """A file as it was read.

    Attributes:
        name: The file's name, for sentences.
        bom: The mark at its beginning, or nothing.
        codec: How it is encoded.
        text: All of it, without the mark.
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
        """The names of the columns, without space around them."""
        return tuple(cell.text.strip() for cell in self.rows[0])

    def cell(self, row: int, column: int) -> str:
        """What a cell says, without space around it; nothing where a row is too short."""
        cells = self.rows[row]
        return cells[column].text.strip() if column < len(cells) else ""

    def is_blank(self, row: int) -> bool:
        """Whether nothing stands in a row."""
        return not any(cell.text.strip() for cell in self.rows[row])

    def with_cells(self, changes: Mapping[tuple[int, int], str]) -> bytes:
        """The file with other texts in some cells.

        Args:
            changes: (row, column) -> text, counted from 0. A cell that was quoted stays quoted.

        Raises:
            UsageError: A row is too short for its cell.
        """
        pieces, done = [], 0
        for (row, column), text in sorted(changes.items()):
            if len(self.rows[row]) != len(self.rows[0]):
                raise UsageError(
                    f"{self.name}, row {row + 1}: has {len(self.rows[row])} cells, the first row "
                    f"{len(self.rows[0])}. Download the file again."
                )
            cell = self.rows[row][column]
            pieces += [self.text[done : cell.start], self._written(text, cell.quoted)]
            done = cell.end
        return self.bom + "".join([*pieces, self.text[done:]]).encode(self.codec)

    def _written(self, text: str, quoted: bool) -> str:
        if quoted or any(mark in text for mark in (self.delimiter, '"', "\r", "\n")):
            return '"' + text.replace('"', '""') + '"'
        return text


def csv_text(name: str, content: bytes, *, one_column: bool = False) -> CsvText:
    """A CSV file, read so that it can be written again exactly.

    The delimiter is the first one that stands in the first row: no LMS has one in its first column's name.

    Args:
        name: The file's name, for sentences.
        content: The file.
        one_column: A table of a single column, which has no delimiter, is one too.

    Raises:
        UsageError: It is no such file.
    """
    bom, codec = next(((mark, codec) for mark, codec in _BOMS if content.startswith(mark)), (b"", "utf-8"))
    try:
        text = content[len(bom) :].decode(codec)
    except UnicodeDecodeError:
        raise UsageError(
            f"{name} is not UTF-8 text, so another program saved it since. Download it again."
        ) from None
    first = re.search(f"[{DELIMITERS}]", text)
    if (first is None and not (one_column and text.strip())) or "\0" in text:
        raise UsageError(f"{name} is not a CSV table. Give the file as the LMS made it.")
    delimiter = first[0] if first else DELIMITERS[0]
    return CsvText(name, bom, codec, text, delimiter, _rows(name, text, delimiter))


def _rows(name: str, text: str, delimiter: str) -> tuple[tuple[Cell, ...], ...]:
    plain = re.compile(f"[^{delimiter}\r\n]*")
    rows: list[tuple[Cell, ...]] = []
    cells: list[Cell] = []
    place = 0
    while place < len(text) or cells:
        cell = _cell(text, place, plain)
        cells.append(cell)
        place = cell.end
        if text.startswith(delimiter, place):
            place += 1
            continue
        line_end = _LINE_END.match(text, place)
        if line_end is None and place < len(text):
            raise UsageError(
                f"{name}, row {len(rows) + 1}: a quotation mark is not closed as CSV has it. "
                "Download the file again."
            )
        rows.append(tuple(cells))
        cells = []
        place = line_end.end() if line_end else place
    return tuple(rows)


def _cell(text: str, place: int, plain: re.Pattern[str]) -> Cell:
    found = _QUOTED.match(text, place)
    if found is not None:
        return Cell(found[0][1:-1].replace('""', '"'), place, found.end(), quoted=True)
    found = plain.match(text, place)
    assert found is not None, "the pattern matches nothing, too"
    # an opening mark that nothing closes is not a cell
    end = place if found[0].startswith('"') else found.end()
    return Cell(text[place:end], place, end, quoted=False)
