"""Persons leave every table that there is, whoever added it, and what only seems to be theirs stays."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path

import pytest
from sqlalchemy import Column, Integer, LargeBinary, MetaData, String, Table, create_engine, insert

from grader.domain.edit import Marked, OrallyChecked, OwnerAssigned, PickedForOral, Released, Ruled
from grader.domain.evidence import Evidence
from grader.domain.oral_check import OralFlag, OralOutcome, OralReason
from grader.domain.submission import Origin
from grader.gradebook import Gradebook
from grader.gradebook.forgotten_rows import UNTOUCHED, PersonalRecords

HER, HIM = "400101204", "400101205"
NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
WITHOUT_PERSONS = {
    "alembic_version.version_num",
    "images.digest",
    "forgettings.at",
    "forgettings.who",
    "forgettings.rows",
}


def evidence(student_id: str, **fields: object) -> Evidence:
    return replace(Evidence(student_id, "small", f"digest of {student_id}", NOW), **fields)  # type: ignore[arg-type]


@pytest.fixture
def out(tmp_path: Path) -> Path:
    with Gradebook(tmp_path, assignment_id="small") as book:
        book.record(
            evidence(HER, origin=Origin("key-of-hers", "hers", person="Jane Doe")),
            {"a.png": b"hers", "b.png": b"shared"},
        )
        book.record(evidence(HIM, reason=f"as {HER}, Doe, Jane and ۴۰۰۱۰۱۲۰۴"), {"b.png": b"shared"})
    return tmp_path


@pytest.fixture
def records(out: Path) -> Iterator[PersonalRecords]:
    opened = PersonalRecords(out)
    yield opened
    opened.close()


def forget(records: PersonalRecords, student_id: str) -> dict[str, int]:
    ids = frozenset({student_id})
    mentions = records.persons().mentions(ids)
    expected = records.counts(ids, mentions)
    assert records.forget(ids, mentions, who="ta1", when=NOW, files=0) == expected
    records.compact()
    assert records.left(mentions) == ()
    return expected


def test_rows_images_and_mentions_go_and_no_byte_stays(out: Path, records: PersonalRecords) -> None:
    forget(records, HER)
    for path in out.glob("gradebook.sqlite*"):
        content = path.read_bytes()
        assert not [needle for needle in (HER, "Jane", "hers", "\\u06f4") if needle.encode() in content], path
    with Gradebook(out, assignment_id="small") as book:
        assert book.students() == (HIM,)
        assert book.evidence(HIM).reason == "as forgotten, forgotten and forgotten"
        assert book.images(HIM) == {"b.png": b"shared"}


def test_whose_a_submission_turned_out_to_be_decides_what_goes(out: Path, records: PersonalRecords) -> None:
    """What began under HER id is HIS now: it stays, under another key, with its marks; HER releases go."""
    with Gradebook(out, assignment_id="small") as book:
        base = {"who": "ta1", "when": NOW, "why": "She said."}
        book.add_owner_edits(
            [
                OwnerAssigned(**base, student_id=HIM, listed_as=HER, by_person=True, held=False),
                OwnerAssigned(**base, student_id=HER, listed_as=HIM, by_person=True, held=False),
                Marked(**base, student_id=HER, target="q1", points=3.0),
                Released(**base, student_id=HER, way="publish", points=7.0),
                Released(**base, student_id=HIM, way="publish", points=3.0),
            ]
        )
    forget(records, HER)
    with Gradebook(out, assignment_id="small") as book:
        assert book.students() == (HIM,)
        assert book.evidence(HIM).origin.upload == "hers"  # the upload that is his now
        marks = [edit for edit in book.edits(HIM) if isinstance(edit, Marked)]
        releases = [edit.points for edit in book.snapshot().edits if isinstance(edit, Released)]
    assert [mark.points for mark in marks] == [3.0] and releases == [3.0]


@pytest.mark.parametrize("of_sender", [True, False], ids=["as it was recorded before", "as it is now"])
def test_whoever_sent_it_for_a_forgotten_mate_stays_whole(tmp_path: Path, of_sender: bool) -> None:
    """The number and the name of the upload are the sender's: an LMS's rows are found by them."""
    sent = Origin("Moodle:1234567", "Jane Doe_1234567", "moodle-1234567", "Moodle", "1234567", "Jane Doe")
    number = sent.number if of_sender else ""
    key = f"{sent.key}:{HIM}"
    his = replace(sent, key=key, listed_as="upload-x-12345678", number=number, person="", known_id=HIM)
    with Gradebook(tmp_path, assignment_id="small") as book:
        book.record(evidence(HER, origin=sent), {})
        book.record(evidence(HIM, origin=his), {})
    records = PersonalRecords(tmp_path)
    forget(records, HIM)
    records.close()
    with Gradebook(tmp_path, assignment_id="small") as book:
        assert book.students() == (HER,) and book.evidence(HER).origin == sent


def test_rulings_and_oral_checks_go_and_in_others_the_mention(out: Path, records: PersonalRecords) -> None:
    """Also those that were taken back: a withdrawal is a row of its own."""
    with Gradebook(out, assignment_id="small") as book:
        for student_id in (HER, HIM):
            about = {"who": "ta1", "when": NOW, "why": f"Asked beside {HER}.", "student_id": student_id}
            book.add_owner_edits(
                [
                    Ruled(**about, counts=False, digest="d"),
                    Ruled(**about, counts=False, digest="d", withdrawn=True),
                    PickedForOral(**about, reasons=(OralFlag(OralReason.SIMILAR, f"beside {HER}"),)),
                    OrallyChecked(**about, outcome=OralOutcome.PASSED, digest="d"),
                    OrallyChecked(**about, outcome=None, digest="d"),
                ]
            )
    assert forget(records, HER)["decisions"] == 10
    with Gradebook(out, assignment_id="small") as book:
        edits = book.edits()
    assert {edit.student_id for edit in edits} == {HIM} and len(edits) == 5
    assert {edit.why for edit in edits} == {"Asked beside forgotten."}
    (picked,) = (edit for edit in edits if isinstance(edit, PickedForOral))
    assert picked.reasons == (OralFlag(OralReason.SIMILAR, "beside forgotten"),)


def test_when_something_was_last_added_about_somebody(out: Path, records: PersonalRecords) -> None:
    later = NOW + timedelta(days=9)
    with Gradebook(out, assignment_id="small") as book:
        book.add_owner_edits([Marked(who="ta1", when=later, why="", student_id=HIM, target="q1", points=1.0)])
    people = records.persons().by_id
    assert people[HER].last == NOW.isoformat() and people[HIM].last == later.isoformat()


def test_a_table_that_is_added_later_is_covered(out: Path, records: PersonalRecords) -> None:
    """With a column of ids, with texts that mention somebody, and with rows that refer to rows that go."""
    with closing(sqlite3.connect(out / "gradebook.sqlite")) as raw, raw:
        raw.executescript(
            f"""
            CREATE TABLE later_notes (assignment_id TEXT, student_id TEXT, marker TEXT, note TEXT,
                PRIMARY KEY (assignment_id, student_id));
            INSERT INTO later_notes VALUES
                ('small', '{HER}', 'ta1', 'x'), ('small', '{HIM}', 'ta1', 'see {HER}');
            CREATE TABLE later_parts (run_id INTEGER REFERENCES runs (id), part TEXT);
            INSERT INTO later_parts SELECT id, 'her part' FROM runs WHERE student_id = '{HER}';
            CREATE TRIGGER later_never BEFORE DELETE ON later_notes BEGIN SELECT RAISE(ABORT, 'no'); END;
            """
        )
    raw.close()
    counts = forget(records, HER)
    assert counts["later_notes"] == 2 and counts["later_parts"] == 1
    with closing(sqlite3.connect(out / "gradebook.sqlite")) as raw, raw:
        assert raw.execute("SELECT student_id, note FROM later_notes").fetchall() == [(HIM, "see forgotten")]
        assert raw.execute("SELECT * FROM later_parts").fetchall() == []
        with pytest.raises(sqlite3.IntegrityError):
            raw.execute("DELETE FROM later_notes")
    raw.close()


def test_every_column_of_every_table_that_can_hold_somebody_is_cleaned(
    out: Path, records: PersonalRecords
) -> None:
    """A column that is new is tried here without being named: each text of each table mentions HER."""
    tried: set[str] = set()
    engine = create_engine(f"sqlite:///{out / 'gradebook.sqlite'}")
    metadata = MetaData()
    with engine.connect() as connection:
        metadata.reflect(connection)
        assert set(UNTOUCHED) <= set(metadata.tables)
    for table in metadata.sorted_tables:
        if table.name in UNTOUCHED:
            continue
        with engine.begin() as connection:
            connection.execute(insert(table).values({c.name: _value(c) for c in table.c}))
        tried |= set(texts(table))
    columns = {column for table in metadata.sorted_tables for column in texts(table)}
    engine.dispose()
    assert columns - tried == WITHOUT_PERSONS
    mentions = records.persons().mentions(frozenset({HER}))
    records.forget(frozenset({HER}), mentions, who=f"ta {HER}", when=NOW, files=0)
    assert records.left(mentions) == ()


def texts(table: Table) -> Iterator[str]:
    """The columns that can hold a text about somebody."""
    for column in table.c:
        if isinstance(column.type, String) and not column.foreign_keys:
            yield f"{table.name}.{column.name}"


def _value(column: Column[object]) -> object:
    """A value that mentions HER wherever a text can; ids, kinds and JSON stay readable."""
    if column.name == "digest":
        return sha256(b"shared").hexdigest()
    if column.name in ("id", "number"):
        return 1000
    if column.name == "run_id":
        return 2  # HIS
    if isinstance(column.type, LargeBinary):
        return b""
    if column.name == "kind":
        return "mark"
    if column.name == "assignment_id":
        return "small"
    if column.name == "at":
        return NOW.isoformat()
    if column.name == "student_id":
        return HIM
    if column.name in ("content", "record", "evidence", "lateness"):
        return f'{{"target": "q", "points": 1, "comment": "see {HER}"}}'
    return 1 if isinstance(column.type, Integer) or not isinstance(column.type, String) else f"see {HER}"
