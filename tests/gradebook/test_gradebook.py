"""Nothing that was recorded is ever lost or changed, and what is wrong is told in a sentence."""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import Engine, event

from grader.domain.edit import Marked, Waived
from grader.domain.errors import EngineError, UsageError
from grader.domain.evidence import Evidence, Training, TrainingOutcome, UnfinishedRun
from grader.domain.run_facts import RunFacts
from grader.domain.score import Total
from grader.gradebook import Gradebook
from grader.gradebook.records import evidence_text

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
BARE = Evidence("400101204", "vit_defects", "ab12", NOW, engine="0.1.0", assignment_digest="cd34")
MARK = Marked(
    who="ta1",
    when=NOW,
    why="Read the report.",
    student_id="400101204",
    target="q6",
    points=3.5,
    comment="Good.",
    remarks=(("cite", "Cite it."),),
)
WAIVER = Waived(who="ta2", when=NOW + timedelta(hours=1), why="The check was wrong.", check="scale")
TOTAL = Total("400101204", 41.5, 65, 35, 100, "graded", "ta1", NOW, "grade")


@pytest.fixture
def book(tmp_path: Path) -> Iterator[Gradebook]:
    with Gradebook(tmp_path) as made:
        yield made


# --- runs and images ------------------------------------------------------------------------------------


def test_every_run_is_kept_and_the_last_counts(book: Gradebook) -> None:
    first, second = replace(BARE, reason="first"), replace(BARE, reason="second")
    assert book.record(first, {"p0.png": b"old", "p1.png": b"same"}, who="ta1") == 1
    assert book.record(second, {"p0.png": b"new", "p1.png": b"same"}, who="ta2") == 2
    assert book.runs("400101204") == (1, 2)
    assert book.evidence("400101204") == second
    assert book.evidence("400101204", 1) == first
    assert book.images("400101204") == {"p0.png": b"new", "p1.png": b"same"}
    assert book.images("400101204", 1) == {"p0.png": b"old", "p1.png": b"same"}
    assert book.images("400101204", 1, but=("p1.png", "none.png")) == {"p0.png": b"old"}
    told = [(run.number, run.who, run.submission_digest, run.engine) for run in book.run_records("400101204")]
    assert told == [(1, "ta1", "ab12", "0.1.0"), (2, "ta2", "ab12", "0.1.0")]


def test_one_reading_shows_one_moment_and_nothing_is_written_in_it(tmp_path: Path) -> None:
    with Gradebook(tmp_path) as book, Gradebook(tmp_path) as another:
        book.record(BARE, {})
        with book.one_reading():
            assert book.students() == ("400101204",)
            another.record(replace(BARE, student_id="400101205"), {})
            assert book.students() == ("400101204",)
            with pytest.raises(EngineError, match="written during a reading"):
                book.record(replace(BARE, student_id="400101206"), {})
        assert book.students() == ("400101204", "400101205")


def test_the_record_is_the_text_itself(book: Gradebook, tmp_path: Path) -> None:
    book.record(BARE, {})
    [(text,)] = rows(tmp_path, "SELECT evidence FROM runs")
    assert text == evidence_text(BARE)


def test_facts_stand_beside_the_evidence_and_replace_no_damaged_evidence(
    book: Gradebook, tmp_path: Path
) -> None:
    """They say what the evidence says, and facts that cannot be read are taken from it."""
    stopped = Training(TrainingOutcome.COMPLETED, unfinished=(UnfinishedRun(2, TrainingOutcome.BUDGET, ""),))
    queued = replace(
        BARE, training=stopped, variant={"heads": 4}, attempt=2, data_digest="ef56", partial=True
    )
    facts = RunFacts.of(queued)
    assert facts.out_of_time and not RunFacts.of(BARE).out_of_time
    book.record(replace(BARE, student_id="400101205"), {})
    book.record(BARE, {})
    book.record(queued, {})
    assert book.latest_facts() == {"400101204": facts, "400101205": RunFacts.of(BARE)}
    raw = sqlite3.connect(tmp_path / "gradebook.sqlite")
    raw.execute("DROP TRIGGER runs_no_update")
    raw.execute("UPDATE runs SET facts = '{}' WHERE number = 2")
    raw.commit()
    assert book.latest_facts()["400101204"] == facts
    raw.execute("UPDATE runs SET evidence = '{}' WHERE number = 2")
    raw.commit()
    raw.close()
    assert book.latest_facts().keys() == {"400101205"}, "it is examined again"


def test_an_image_that_many_share_is_stored_once(book: Gradebook, tmp_path: Path) -> None:
    for student in ("a", "b", "c"):
        book.record(replace(BARE, student_id=student), {"p0.png": b"x" * 1000, "p1.png": student.encode()})
    assert rows(tmp_path, "SELECT count(*) FROM images") == [(4,)]
    assert book.images("b") == {"p0.png": b"x" * 1000, "p1.png": b"b"}


def test_students_are_those_with_evidence(tmp_path: Path) -> None:
    with Gradebook(tmp_path / "out") as book:
        assert (book.students(), book.edits(), book.totals("b-2")) == ((), (), ())
        assert not (tmp_path / "out").exists(), "asking makes nothing"
        for student in ("b-2", "a_1", "400101204"):
            book.record(replace(BARE, student_id=student), {})
        assert book.students() == ("400101204", "a_1", "b-2")


def test_each_book_has_a_salt_of_its_own_for_good(tmp_path: Path) -> None:
    """It is made with the book, by whoever asks first, and never changes."""
    salts = []
    for name in ("one", "two"):
        with Gradebook(tmp_path / name) as book:
            salts.append(book.class_salt())
        with Gradebook(tmp_path / name, assignment_id="another") as book:
            book.record(BARE, {})
            assert book.class_salt() == salts[-1]
    assert len(set(salts)) == 2 and all(len(salt) == 64 for salt in salts)


def test_the_history_of_a_student_is_told_with_what_nobody_can_read(book: Gradebook, tmp_path: Path) -> None:
    assert book.history("400101204") == ()
    book.record(BARE, {})
    later = replace(BARE, submission_digest="ef56")
    book.record(later, {})
    book.record(replace(BARE, student_id="other"), {})
    assert book.history("400101204") == (("ab12", BARE), ("ef56", later))
    with closing(sqlite3.connect(tmp_path / "gradebook.sqlite")) as raw, raw:
        raw.execute("DROP TRIGGER runs_no_update")
        raw.execute("UPDATE runs SET evidence = '{' WHERE number = 1 AND student_id = '400101204'")
    raw.close()
    assert book.history("400101204") == (("ab12", None), ("ef56", later))


def test_a_book_of_several_assignments_wants_to_know_which(tmp_path: Path) -> None:
    with Gradebook(tmp_path) as book:
        book.record(BARE, {})
        book.record(replace(BARE, assignment_id="cnn", student_id="other"), {})
    with Gradebook(tmp_path) as book, pytest.raises(UsageError) as caught:
        book.students()
    assert str(caught.value) == (
        f"{tmp_path / 'gradebook.sqlite'} holds several assignments: cnn, vit_defects. "
        "Say which with --assignment."
    )
    with Gradebook(tmp_path, assignment_id="cnn") as book:
        assert book.students() == ("other",)
        assert list(book.snapshot().evidence) == ["other"]


# --- edits and totals -----------------------------------------------------------------------------------


def test_edits_and_totals_come_back_exactly_and_in_order(book: Gradebook) -> None:
    book.record(BARE, {})
    book.record(BARE, {}, total=TOTAL)
    lower = replace(TOTAL, points=40.0, cause="regrade")
    assert book.append([MARK, WAIVER], [lower], after=book.snapshot().state)
    assert book.edits() == (replace(MARK, run=2), WAIVER), "a mark is about the latest run"
    assert book.totals("400101204") == (TOTAL, lower)
    snapshot = book.snapshot()
    assert snapshot.edits == book.edits() and snapshot.totals == {"400101204": lower}


def test_a_total_that_says_the_same_is_not_told_again(book: Gradebook) -> None:
    book.record(BARE, {}, total=TOTAL)
    book.record(BARE, {}, total=replace(TOTAL, who="ta2", cause="grade again"))
    assert book.totals("400101204") == (TOTAL,)
    later = replace(TOTAL, points=42.0)
    assert book.append([], [later, replace(TOTAL, student_id="b")], after=book.snapshot().state)
    assert book.append([], [later, replace(TOTAL, student_id="b")], after=book.snapshot().state)
    assert (book.totals("400101204"), len(book.totals("b"))) == ((TOTAL, later), 1)


def test_what_was_worked_out_from_an_older_state_is_not_taken(book: Gradebook) -> None:
    book.record(BARE, {})
    before = book.snapshot().state
    assert book.append([MARK], [], after=before)
    assert not book.append([MARK], [TOTAL], after=before)
    assert len(book.edits()) == 1 and book.totals("400101204") == ()
    before = book.snapshot().state
    book.record(BARE, {})
    assert not book.append([MARK], [], after=before)


def test_a_kind_of_edit_that_only_a_newer_grader_knows_is_named(book: Gradebook, tmp_path: Path) -> None:
    book.record(BARE, {})
    book.append([MARK], [], after=book.snapshot().state)
    with closing(sqlite3.connect(tmp_path / "gradebook.sqlite")) as raw, raw:
        raw.execute("DROP TRIGGER decisions_no_update")
        raw.execute("UPDATE decisions SET kind = 'curve'")
    raw.close()
    with pytest.raises(UsageError, match="an edit of the kind 'curve', which a newer grader wrote"):
        book.edits()


# --- append-only ----------------------------------------------------------------------------------------

TABLES = ("runs", "images", "run_images", "decisions", "totals", "class_salt")


def filled(folder: Path) -> None:
    """A book with a row in every table."""
    with Gradebook(folder) as book:
        book.record(BARE, {"p0.png": b"x"}, total=TOTAL)
        assert book.append([MARK], [], after=book.snapshot().state)


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("statement", ["DELETE FROM {}", "UPDATE {} SET rowid = rowid + 7"])
def test_the_database_itself_refuses_changes(tmp_path: Path, table: str, statement: str) -> None:
    filled(tmp_path)
    raw = sqlite3.connect(tmp_path / "gradebook.sqlite")
    with pytest.raises(sqlite3.IntegrityError, match=f"only grows: nothing in {table} is changed"):
        raw.execute(statement.format(table))
    raw.close()


def test_no_statement_changes_or_deletes(tmp_path: Path) -> None:
    said: list[str] = []

    def hear(*arguments: object) -> None:
        said.append(str(arguments[2]).strip().upper())

    event.listen(Engine, "before_cursor_execute", hear)
    try:
        filled(tmp_path)
        with Gradebook(tmp_path) as book:
            book.record(BARE, {"p0.png": b"x"}, total=replace(TOTAL, points=1.0))
            book.append([MARK, WAIVER], [TOTAL], after=book.snapshot().state)
    finally:
        event.remove(Engine, "before_cursor_execute", hear)
    assert sum(one.startswith("INSERT INTO RUNS") for one in said) == 2
    said = [one for one in said if "ALEMBIC_VERSION" not in one]  # which tables the book has
    assert not [one for one in said if one.startswith(("UPDATE", "DELETE", "REPLACE", "DROP"))]


# --- many at once ---------------------------------------------------------------------------------------


def test_threads_that_record_at_once_lose_nothing(book: Gradebook) -> None:
    def work(name: str) -> None:
        for number in range(10):
            book.record(replace(BARE, reason=f"{name}{number}"), {"p.png": b"x", f"{name}.png": b"y"})

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert book.runs("400101204") == tuple(range(1, 41))
    reasons = {book.evidence("400101204", number).reason for number in range(1, 41)}
    assert reasons == {f"{name}{number}" for name in "abcd" for number in range(10)}


def test_a_reader_sees_one_state_while_another_writes(book: Gradebook, tmp_path: Path) -> None:
    book.record(BARE, {})
    with book._database.reading() as connection:
        before = connection.exec_driver_sql("SELECT count(*) FROM runs").scalar()
        with Gradebook(tmp_path) as other:
            other.record(BARE, {})
        assert connection.exec_driver_sql("SELECT count(*) FROM runs").scalar() == before == 1


# --- what can be wrong ----------------------------------------------------------------------------------


def rows(folder: Path, statement: str) -> list[tuple[object, ...]]:
    raw = sqlite3.connect(folder / "gradebook.sqlite")
    try:
        return raw.execute(statement).fetchall()
    finally:
        raw.close()


def test_results_of_an_older_grader_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "evidence" / "400101204").mkdir(parents=True)
    (tmp_path / "evidence" / "400101204" / "run-0001.json").write_text("{}")
    for use in (Gradebook.students, Gradebook.snapshot, lambda book: book.record(BARE, {})):
        with Gradebook(tmp_path) as book, pytest.raises(UsageError) as caught:
            use(book)
        assert str(caught.value) == (
            f"{tmp_path} holds results of an older grader (evidence/400101204/run-0001.json), "
            "which this one does not read. Grade into another --out folder."
        )


def test_a_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    (tmp_path / "gradebook.sqlite").write_bytes(b"hello " * 400)
    with Gradebook(tmp_path) as book, pytest.raises(UsageError) as caught:
        book.students()
    assert str(caught.value) == (
        f"{tmp_path / 'gradebook.sqlite'} cannot be used (file is not a database). "
        "Put back a copy of it, or grade into another --out folder."
    )


@pytest.mark.parametrize("text", ["", "null", "{", '{"format": 1, "evidence": {}}', "[" * 100_000])
def test_a_damaged_record_is_named(book: Gradebook, tmp_path: Path, text: str) -> None:
    book.record(BARE, {})
    with closing(sqlite3.connect(tmp_path / "gradebook.sqlite")) as raw, raw:
        raw.execute("DROP TRIGGER runs_no_update")
        raw.execute("UPDATE runs SET evidence = ?", (text,))
    raw.close()
    for use in (lambda: book.evidence("400101204"), book.snapshot):
        with pytest.raises(UsageError, match="run 1 of '400101204' is damaged: it is not what the grader"):
            use()


def test_evidence_about_somebody_else_is_damage(book: Gradebook, tmp_path: Path) -> None:
    book.record(BARE, {})
    with closing(sqlite3.connect(tmp_path / "gradebook.sqlite")) as raw, raw:
        raw.execute("DROP TRIGGER runs_no_update")
        raw.execute("UPDATE runs SET student_id = 'other'")
    raw.close()
    with pytest.raises(UsageError, match="run 1 of 'other' is damaged"):
        book.evidence("other")


def test_a_book_of_a_newer_grader_is_told_apart(tmp_path: Path) -> None:
    filled(tmp_path)
    with closing(sqlite3.connect(tmp_path / "gradebook.sqlite")) as raw, raw:
        raw.execute("UPDATE alembic_version SET version_num = '9999'")
    raw.close()
    with (
        Gradebook(tmp_path) as book,
        pytest.raises(UsageError, match=r"a newer grader .*'9999'.*Update this"),
    ):
        book.students()


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("nonsense", "The gradebook's address is not a URL of a database."),
        ("mysql://host/grades", "The gradebook cannot be kept in 'mysql'. Use PostgreSQL"),
        ("sqlite://", "The gradebook needs a file."),
        (
            "postgresql://ta1:secret@127.0.0.1:1/grades",
            "postgresql+psycopg://ta1:***@127.0.0.1:1/grades cannot",
        ),
    ],
)
def test_an_address_that_does_not_work_is_told(tmp_path: Path, url: str, sentence: str) -> None:
    with pytest.raises(UsageError) as caught, Gradebook(tmp_path, url) as book:
        book.students()
    assert str(caught.value).startswith(sentence)
    assert "secret" not in str(caught.value)


def test_an_sqlite_file_elsewhere_is_a_book_too(tmp_path: Path) -> None:
    with Gradebook(tmp_path / "out", f"sqlite:///{tmp_path}/book.sqlite") as book:
        book.record(BARE, {})
    assert (tmp_path / "book.sqlite").exists() and not (tmp_path / "out").exists()


@pytest.mark.parametrize("student", ["nobody", "../evidence", "", "*"])
def test_an_unknown_student_is_named(book: Gradebook, student: str) -> None:
    book.record(BARE, {})
    for question in (book.runs, book.evidence, book.images):
        with pytest.raises(UsageError) as caught:
            question(student)
        assert f"has no evidence about '{student}'. Grade that submission first." in str(caught.value)


def test_an_unknown_run_is_told_which_exist(book: Gradebook) -> None:
    book.record(BARE, {})
    with pytest.raises(UsageError, match=r"There is no run 7 of '400101204'\. There are 1\."):
        book.evidence("400101204", 7)


@pytest.mark.parametrize("name", ["../p.png", ".p.png", "a/b.png", "", "p\n.png"])
def test_a_name_that_is_no_file_name_is_our_fault(book: Gradebook, tmp_path: Path, name: str) -> None:
    with pytest.raises(EngineError, match="cannot be a file name"):
        book.record(BARE, {name: b""})
    with pytest.raises(EngineError, match="cannot be a file name"):
        book.record(replace(BARE, student_id=name), {})
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    with Gradebook(tmp_path / "out") as book, pytest.raises(UsageError, match="out cannot be written"):
        book.record(BARE, {})
