"""The same book on PostgreSQL, where the machine has one to start."""

import multiprocessing
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Barrier
from typing import NoReturn

import pytest
from sqlalchemy import create_engine

from grader.domain.edit import Marked
from grader.domain.errors import UsageError
from grader.domain.evidence import Evidence
from grader.domain.score import Total
from grader.gradebook import Gradebook
from grader.gradebook.forgotten_rows import PersonalRecords
from tests.postgres_server import server

pytestmark = pytest.mark.service
NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
BARE = Evidence("400101204", "vit_defects", "ab12", NOW, reason="“homework.py” is \n broken \x00 \ud800")
TOTAL = Total("400101204", 41.5, 65, 35, 100, "graded", "ta1", NOW, "grade")


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory, lacking: Callable[[str], NoReturn]) -> Iterator[str]:
    """An empty database of a server of its own."""
    with server(tmp_path_factory.mktemp("postgres"), lacking) as address:
        yield address("postgres")


def test_the_book_is_the_same_on_postgresql(url: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with Gradebook(out, url) as book:
        assert book.students() == ()
        assert book.record(BARE, {"p0.png": b"\x00\xff"}, who="ta1", total=TOTAL) == 1
        assert book.record(replace(BARE, reason="later"), {"p0.png": b"\x00\xff"}) == 2
        mark = Marked(
            who="ta1",
            when=NOW,
            why="Read.",
            student_id="400101204",
            target="q6",
            points=3.5,
            comment="Good.",
            remarks=(("a", "b"),),
        )
        before = book.snapshot().state
        assert book.append([mark], [replace(TOTAL, points=45.0)], after=before)
        assert not book.append([mark], [], after=before)
        salt = book.class_salt()
    with Gradebook(out, url) as book:
        assert book.evidence("400101204", 1) == BARE
        assert book.images("400101204", 2) == {"p0.png": b"\x00\xff"}
        snapshot = book.snapshot()
        assert snapshot.evidence["400101204"].reason == "later"
        assert snapshot.edits == (replace(mark, run=2),)
        assert [total.points for total in book.totals("400101204")] == [41.5, 45.0]
        assert book.class_salt() == salt and len(salt) == 64
        assert book.history("400101204") == (("ab12", BARE), ("ab12", replace(BARE, reason="later")))
        for table in ("runs", "images", "run_images", "decisions", "totals", "class_salt"):
            with pytest.raises(UsageError, match="only grows"), book._database.writing() as connection:
                connection.exec_driver_sql(f"DELETE FROM {table}")
    assert not out.exists()


def test_a_reader_on_postgresql_sees_one_state(url: str, tmp_path: Path) -> None:
    counting = "SELECT count(*) FROM runs"
    with (
        Gradebook(tmp_path, url) as book,
        Gradebook(tmp_path, url) as other,
        book._database.reading() as connection,
    ):
        count = connection.exec_driver_sql(counting).scalar()
        other.record(BARE, {})
        assert connection.exec_driver_sql(counting).scalar() == count


def test_a_person_is_forgotten_on_postgresql(url: str, tmp_path: Path) -> None:
    other = replace(BARE, student_id="400101205", reason="as 400101204")
    with Gradebook(tmp_path / "out", url, assignment_id="vit_defects") as book:
        for evidence in (BARE, other):
            book.record(evidence, {"p0.png": evidence.student_id.encode()}, who="ta1")
    records = PersonalRecords(tmp_path / "out", url)
    mentions = records.persons().mentions(frozenset({"400101204"}))
    counts = records.counts(frozenset({"400101204"}), mentions)
    done = records.forget(frozenset({"400101204"}), mentions, who="ta1", when=NOW, files=0)
    assert done == counts and counts["runs"] >= 2
    records.compact()
    assert records.left(mentions) == ()
    records.close()
    with Gradebook(tmp_path / "out", url, assignment_id="vit_defects") as book:
        assert book.students() == ("400101205",)
        assert book.evidence("400101205").reason == "as forgotten"
        assert book.images("400101205") == {"p0.png": b"400101205"}


def _salt_of_new_book(url: str, together: Barrier) -> str:
    together.wait(30)
    with Gradebook(Path("/nowhere"), url, assignment_id="vit_defects") as book:
        return book.class_salt()


def test_several_may_be_the_first_at_once(url: str) -> None:
    """As the console, a grading and its nodes are, after an update of the grader as well."""
    engine = create_engine(url.replace("postgresql:", "postgresql+psycopg:"), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.exec_driver_sql("CREATE DATABASE fresh")
    engine.dispose()
    fresh, several = url.replace("/postgres?", "/fresh?"), multiprocessing.get_context("spawn")
    with several.Manager() as manager, ProcessPoolExecutor(3, mp_context=several) as pool:
        together = manager.Barrier(3)
        salts = {
            made.result() for made in [pool.submit(_salt_of_new_book, fresh, together) for _ in range(3)]
        }
    assert len(salts) == 1
