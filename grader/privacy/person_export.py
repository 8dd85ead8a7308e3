"""Puts together all that is kept about a person, so that the person can read it.

A zip with a page to begin with: the records of the gradebook, the parts of the work that are kept, marks and
messages as tables, the pages that were made, what was pushed, and what other files say about the person.
Other students are left out of it by their ids and names, and so are the names of people who mark. It changes
nothing, except that the gradebook learns where the zip lies. Tests: `tests/privacy/test_person_export.py`.
"""

import contextlib
import csv
import html
import io
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from grader.domain.errors import UsageError
from grader.domain.mentions import Mentions
from grader.domain.submission import text_of
from grader.files import atomic
from grader.files.forgotten_text import decoded
from grader.files.stored_records import VIEW_FILE, view_in
from grader.files.zip_archive import zipped
from grader.gradebook import Gradebook
from grader.gradebook.forgotten_rows import STAFF_COLUMNS, PersonalRecords
from grader.privacy.file_cleaning import FIRST_PAGE, FileFate
from grader.privacy.kept_files import KeptFile, kept_files, kept_places, with_names
from grader.publishing.exporting import FOLDER as EXPORTS
from grader.reports.typesetting import environment
from grader.reports.whole_class.similarity_record import FILE as SIMILARITY
from grader.results.folder_use import PERSON, note_written

STAFF, ANOTHER = "staff", "another-student"
_TITLES = {
    "runs": "Examinations of the work",
    "decisions": "Marks, comments and decisions",
    "edits": "Marks and decisions, as an older version recorded them",
    "totals": "Totals over time",
}
_LONG = ("evidence", "id")  # columns that tables leave out: they are in the records
_WITHOUT = ("run_images",)  # the names of files, which are in the zip themselves
_TEXTS = (".csv", ".tsv", ".xls", ".json", ".jsonl", ".scores")


@dataclass(frozen=True)
class PersonRequest:
    """Whose records are wanted.

    Attributes:
        to: The zip; None: in the folder of exports.
        also: Further files and folders in which the person may be mentioned.
        gradebook: An SQLAlchemy URL; None: `gradebook.sqlite` in `out`.
    """

    out: Path
    student_id: str
    to: Path | None = None
    also: tuple[Path, ...] = ()
    gradebook: str | None = None


@dataclass
class _Table:
    """A table of the page."""

    heads: list[str]
    rows: list[list[str]] = field(default_factory=list)


def export_person(request: PersonRequest, *, now: datetime) -> tuple[Path, int]:
    """Write the zip; returns its path, and how many files are in it.

    Raises:
        UsageError: Nothing is kept about the person, or the zip cannot be written.
    """
    out, student_id = request.out, request.student_id
    ids = frozenset({student_id})
    records = PersonalRecords(out, request.gradebook)
    try:
        if not records.exists() or student_id not in (people := records.persons()).by_id:
            raise UsageError(f"{out}: nothing is kept about '{student_id}'. See scores.csv.")
        places = kept_places(out, records.places(), request.also)
        theirs = with_names(places, people.mentions(ids))
        others = replace(people.mentions(frozenset(people.by_id) - ids), word=ANOTHER)
        others = replace(others, ids=others.ids - theirs.ids, names=others.names - theirs.names)
        others = replace(others, ids=others.ids | _paired(places.results, theirs))
        # students who asked for a regrade on their own pages are recorded as those who did
        hidden = _Hidden(others, records.staff() - people.by_id.keys(), student_id)
        rows = {
            table: [hidden.row(row) for row in found]
            for table, found in records.rows_of(ids).items()
            if table not in _WITHOUT
        }
        files = [("records.json", "all records of the gradebook", _json(rows))]
        files += [
            (f"{table}.csv", _TITLES.get(table, f"records: {table}"), _csv(found))
            for table, found in rows.items()
        ]
        files += _work(records, ids)
        files += _pages(kept_files(places, theirs), out, theirs, hidden)
    finally:
        records.close()
    tables = [(_TITLES[table], _table(found)) for table, found in rows.items() if table in _TITLES]
    page = (
        environment()
        .get_template("person_export.html.j2")
        .render(
            student_id=student_id,
            generated_at=now,
            tables=tables,
            files=[(name, what) for name, what, _ in files],
        )
    )
    target = request.to or out / EXPORTS / f"person-{student_id}.zip"
    if target.exists():
        raise UsageError(f"{target} is there already. Give another --to.")
    atomic.make_folder(target.parent)
    with Gradebook(out, request.gradebook) as book:
        note_written(book, [target], PERSON)
    content = [(FIRST_PAGE, page.encode("utf-8")), *((name, data) for name, _, data in files)]
    atomic.write(target, zipped(content))
    return target, len(content)


@dataclass(frozen=True)
class _Hidden:
    """What the person does not read: who marked, and who the other students are.

    Attributes:
        own: The person's id, which also stands where the person did something.
    """

    others: Mentions
    staff: frozenset[str]
    own: str

    def row(self, row: dict[str, Any]) -> dict[str, Any]:
        """A row of the gradebook, with documents in it opened."""
        opened = {name: _opened(value) if isinstance(value, str) else value for name, value in row.items()}
        shown: dict[str, Any] = self.value(opened)
        return shown

    def value(self, value: Any) -> Any:
        """Data with a word in place of other students and of people who mark."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.value(item) for item in value]
        if isinstance(value, dict):
            return {
                self.others.replaced(key): STAFF
                if key in STAFF_COLUMNS and item and item != self.own
                else self.value(item)
                for key, item in value.items()
            }
        return value

    def text(self, text: str) -> str:
        """The same of a text."""
        if self.staff:
            names = "|".join(map(re.escape, sorted(self.staff, key=len, reverse=True)))
            text = re.sub(rf"(?<!\w)(?:{names})(?!\w)", STAFF, text)
        return self.others.replaced(text)


def _paired(folders: Sequence[Path], theirs: Mentions) -> frozenset[str]:
    """The ids beside which the person's work was compared: some may have no other result here."""
    found: set[str] = set()
    for folder in folders:
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            pairs = json.loads((folder / SIMILARITY).read_bytes())["pairs"]
            found |= {pair[side] for pair in pairs for side in ("one", "other")}
    return frozenset(found) - theirs.ids


def _opened(text: str) -> Any:
    if text.startswith(("{", "[")):
        try:
            return json.loads(text)
        except ValueError:
            return text
    return text


def _json(document: Any) -> bytes:
    return (json.dumps(document, ensure_ascii=False, indent=1) + "\n").encode("utf-8")


def _csv(rows: Sequence[dict[str, Any]]) -> bytes:
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    heads = [name for name in rows[0] if name not in _LONG]
    writer.writerow(heads)
    writer.writerows([_cell(row[name]) for name in heads] for row in rows)
    return buffer.getvalue().encode("utf-8-sig")  # so that spreadsheets read it


def _cell(value: Any) -> str:
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False)
    text = "" if value is None else str(value)
    return f"'{text}" if text.startswith(("=", "+", "-", "@")) and not _is_number(text) else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _table(rows: Sequence[dict[str, Any]]) -> _Table:
    heads = [name for name in rows[0] if name not in _LONG]
    return _Table(heads, [[_cell(row[name]) for name in heads] for row in rows])


def _work(records: PersonalRecords, ids: frozenset[str]) -> Iterator[tuple[str, str, bytes]]:
    """(path, what it is, content) of what is kept of the work itself, by assignment and run."""
    for assignment_id, row, number, name, content in records.files_of(ids):
        place = f"work/{assignment_id}-{row}-{number}"
        view = view_in({VIEW_FILE: content}) if name == VIEW_FILE else None
        if view is None:
            yield f"{place}/{name}", "a file that belongs to the examination", content
            continue
        cells = (html.unescape(cell.html) or text_of(cell.lines) for cell in view.cells)
        yield f"{place}/code.txt", "what you handed in, as it was read", "\n\n".join(cells).encode("utf-8")


def _pages(
    files: Sequence[KeptFile], out: Path, theirs: Mentions, hidden: _Hidden
) -> Iterator[tuple[str, str, bytes]]:
    """The files that are about the person alone, and what tables of the class say about the person."""
    for number, file in enumerate(files):
        if file.other_host or not file.path.is_file() or file.kind == PERSON:
            continue
        inside = file.path.is_relative_to(out.resolve())
        path = (
            file.path.relative_to(out.resolve()).as_posix()
            if inside
            else f"elsewhere/{number}-{file.path.name}"
        )
        content = file.path.read_bytes()
        if file.cleaned.fate is FileFate.GOES and file.is_own:
            yield f"pages/{path}", file.kind, content
        elif path.endswith(_TEXTS):
            said = [hidden.value(record) for record in _records_about(path, content, theirs)]
            if said:
                yield f"mentions/{path}.json", f"what it says about you: {file.kind}", _json(said)


def _records_about(path: str, content: bytes, theirs: Mentions) -> Iterator[Any]:
    """The lines of a table, or the parts of a document, that mention the person."""
    try:
        text, _ = decoded(content)
    except ValueError:
        return
    if path.endswith((".csv", ".tsv", ".xls")):
        yield from (line for line in text.splitlines() if theirs.are_in(line))
        return
    documents = [text] if path.endswith(".json") else text.splitlines()
    for document in documents:
        with contextlib.suppress(ValueError):
            yield from _parts_about(json.loads(document), theirs)


def _parts_about(value: Any, theirs: Mentions) -> Iterator[Any]:
    """The smallest mappings that have the person's id or name in one of their own values."""
    if isinstance(value, list):
        for item in value:
            yield from _parts_about(item, theirs)
    elif isinstance(value, dict):
        if any(isinstance(item, str) and theirs.are_in(item) for item in value.values()):
            yield value
        else:
            for item in value.values():
                yield from _parts_about(item, theirs)
