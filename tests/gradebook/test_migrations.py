"""The tables that migrations make are those that the statements use."""

import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine

from grader.domain.edit import (
    Because,
    Edit,
    InquiryAsked,
    InquiryExplained,
    InquirySettled,
    OrallyChecked,
    PickedForOral,
    RegradeAnswered,
    RegradeAsked,
    Reviewed,
)
from grader.domain.errors import UsageError
from grader.gradebook import Gradebook
from grader.gradebook.database import VERSION
from grader.gradebook.statements import METADATA, edits_of

OURS = {"remove_constraint", "remove_index", "add_fk"}  # what the statements need not know of


# what a grader with one hidden split for all wrote
OLD_EVIDENCE = """{"format": 1, "evidence": {
 "student_id": "400101204", "assignment_id": "vit_defects", "submission_digest": "ab12",
 "graded_at": "2026-01-02T00:00:00Z", "data_digest": "cd34",
 "training": {"outcome": "completed", "accuracy": 0.61, "runs": [0.62, 0.6, 0.61]}}}"""


def settings() -> Config:
    """Alembic's."""
    config = Config()
    config.set_main_option("script_location", "grader.gradebook:migrations")
    config.set_main_option("path_separator", "os")
    return config


def upgrade(file: Path, version: str) -> None:
    """Bring a book to a version; a file that is not there yet is made."""
    config, engine = settings(), create_engine(f"sqlite:///{file}")
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, version)
    engine.dispose()


def old_book(folder: Path) -> None:
    """A book of the first version, with one run in it."""
    folder.mkdir()
    file = folder / "gradebook.sqlite"
    upgrade(file, "0001")
    with closing(sqlite3.connect(file)) as raw, raw:
        values = (
            "vit_defects",
            "400101204",
            1,
            "ta1",
            "2026-01-02T00:00:00+00:00",
            None,
            "ab12",
            "",
            "0.1.0",
        )
        raw.execute(
            "INSERT INTO runs (assignment_id, student_id, number, who, at, status, submission_digest, "
            f"assignment_digest, engine, evidence) VALUES ({', '.join('?' * 10)})",
            (*values, OLD_EVIDENCE),
        )
    raw.close()


def test_the_newest_migration_is_the_version_that_is_asked_for() -> None:
    assert ScriptDirectory.from_config(settings()).get_current_head() == VERSION


def test_a_book_of_the_first_version_opens_and_gets_a_salt(tmp_path: Path) -> None:
    """What it holds stays as it is."""
    salts = set()
    for name in ("one", "two"):
        old_book(tmp_path / name)
        for _ in range(2):
            with Gradebook(tmp_path / name) as book:
                found = book.evidence("400101204")
                salts.add(book.class_salt())
        assert (found.attempt, found.data_digest, found.training.unfinished) == (None, "cd34", ())
        assert found.training.runs == (0.62, 0.6, 0.61)
        raw = sqlite3.connect(tmp_path / name / "gradebook.sqlite")
        assert raw.execute("SELECT evidence FROM runs").fetchall() == [(OLD_EVIDENCE,)]
        assert raw.execute("SELECT data_digest FROM runs").fetchall() == [(None,)]
        raw.execute("INSERT INTO downloads VALUES (1, 'vit_defects', 'a.zip', 'ta1', 'now', '{}')")
        for table, column in (("class_salt", "salt"), ("downloads", "source")):
            for statement in (f"UPDATE {table} SET {column} = 'known'", f"DELETE FROM {table}"):
                with pytest.raises(sqlite3.IntegrityError, match=f"nothing in {table} is changed"):
                    raw.execute(statement)
        raw.close()
    assert len(salts) == 2 and all(len(salt) == 64 for salt in salts)


def test_migrations_and_tables_agree(tmp_path: Path) -> None:
    with Gradebook(tmp_path) as book, book._database.writing() as connection:
        differences = compare_metadata(MigrationContext.configure(connection), METADATA)
    kept = ("remove_table", "edits")  # as older books have it, with all its rows
    differences = [one for one in differences if (one[0], getattr(one[1], "name", "")) != kept]
    assert [one for one in differences if one[0] not in OURS] == []


def test_a_book_that_was_never_finished_is_finished(tmp_path: Path) -> None:
    (tmp_path / "gradebook.sqlite").touch()
    with Gradebook(tmp_path) as book:
        assert book.students() == ()


def test_the_book_is_not_brought_up_to_date_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Gradebook(tmp_path) as book, book._database.reading():
        pass
    monkeypatch.setattr("alembic.command.upgrade", None)
    with Gradebook(tmp_path) as book:
        assert book.students() == ()


AT = "2026-02-01T12:00:00+00:00"
# no version wrote them in that form
NEWER_KINDS = {
    PickedForOral,
    OrallyChecked,
    RegradeAsked,
    RegradeAnswered,
    Reviewed,
    InquiryAsked,
    InquiryExplained,
    InquirySettled,
}
OLD_KINDS: dict[str, tuple[str, float | None, str, dict[str, Any]]] = {
    "mark": ("q6", 3.5, '[["a", "A."]]', {"target": "q6", "points": 3.5, "remarks": (("a", "A."),)}),
    "waive": ("scale", None, "[]", {"check": "scale", "lifted": False}),
    "unwaive": ("scale", None, "[]", {"check": "scale", "lifted": True}),
    "no_grade": ("ab12", None, "[]", {"counts": False, "digest": "ab12"}),
    "waive_missing": ("", None, "[]", {"counts": True, "digest": None}),
    "claim": ("", 0.72, "[]", {"accuracy": 0.72}),
    "received": ("ab12", None, "[]", {"digest": "ab12", "moment": None}),
    "in_time": ("ab12", None, "[]", {"digest": "ab12"}),
    "extension": ("", 1_769_889_600.5, "[]", {"deadline": datetime.fromtimestamp(1_769_889_600.5, UTC)}),
    "run": ("fell", None, "[]", {"number": None, "because": Because.FELL}),
    "owner": ("400101205", None, "[]", {"listed_as": "400101205", "by_person": True, "held": False}),
    "nobodys": ("moodle-1", None, "[]", {"listed_as": "moodle-1", "by_person": True, "held": True}),
    "matched": ("400101205", None, "[]", {"listed_as": "400101205", "by_person": False, "held": False}),
    "held": ("moodle-1", None, "[]", {"listed_as": "moodle-1", "by_person": False, "held": True}),
    "released": (
        "canvas", 12.0, '[["q6", "4.25"], ["q7", ""]]',
        {"way": "canvas", "points": 12.0, "lines": (("q6", 4.25), ("q7", None))},
    ),
    "accepted": ("", None, "[]", {"file": None}),
}  # fmt: skip


def test_every_kind_of_edit_that_there_was_is_converted(tmp_path: Path) -> None:
    """Row by row, with who, when, why and about which run."""
    file = tmp_path / "gradebook.sqlite"
    upgrade(file, "0003")
    with closing(sqlite3.connect(file)) as raw, raw:
        for number, (kind, (target, value, remarks, _)) in enumerate(OLD_KINDS.items(), start=7):
            row = (
                number,
                "small",
                "400101204",
                kind,
                target,
                value,
                "Told.",
                remarks,
                2,
                "ta1",
                AT,
                "Why.",
                "m.csv",
            )
            raw.execute(f"INSERT INTO edits VALUES ({', '.join('?' * 13)})", row)
    with Gradebook(tmp_path, assignment_id="small") as book, book._database.reading() as connection:
        found = edits_of(connection, "small")
    shared = {
        "who": "ta1",
        "when": datetime.fromisoformat(AT),
        "why": "Why.",
        "student_id": "400101204",
        "run": 2,
    }
    for edit, (kind, (_, _, _, own)) in zip(found, OLD_KINDS.items(), strict=True):
        more = {"comment": "Told.", "sheet": "m.csv"} if kind == "mark" else {}
        assert edit == type(edit)(**shared, **own, **more), kind
    assert {type(edit) for edit in found} == set(Edit.__subclasses__()) - NEWER_KINDS


def test_an_edit_that_no_version_wrote_stops_the_conversion(tmp_path: Path) -> None:
    """And leaves the book as it was."""
    file = tmp_path / "gradebook.sqlite"
    upgrade(file, "0003")
    with closing(sqlite3.connect(file)) as raw, raw:
        values = ("small", None, "curve", "", None, "", "[]", None, "ta1", AT, "", "")
        raw.execute(f"INSERT INTO edits VALUES (1, {', '.join('?' * 12)})", values)
    with (
        Gradebook(tmp_path) as book,
        pytest.raises(UsageError, match="of the kind 'curve', which no version"),
    ):
        book.students()
    raw = sqlite3.connect(file)
    assert raw.execute("SELECT version_num FROM alembic_version").fetchone() == ("0003",)
    raw.close()
