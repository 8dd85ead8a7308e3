"""A writer that is killed at any moment leaves a book that opens whole, with all that was told to be kept."""

import os
import random
import sqlite3
import time
from pathlib import Path

import pytest

from grader.gradebook import Gradebook
from tests.warm_python import Start

WRITER = """
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from grader.domain.edit import Marked
from grader.domain.evidence import Evidence
from grader.domain.analyzed_program import Note
from grader.domain.score import Total
from grader.gradebook import Gradebook

NOW = datetime(2026, 1, 2, tzinfo=UTC)
with Gradebook(Path(sys.argv[1])) as book:
    print("ready", flush=True)
    for number in range(100_000):  # more at a time than a database keeps in memory before it writes
        evidence = Evidence("s", "tiny", "0", NOW, notes=(Note("x" * 20_000),))
        total = Total("s", float(number), 4, 0, 4, "graded", "ta1", NOW, "grade")
        run = book.record(evidence, {"own.png": number.to_bytes(4, "big") * 1_000_000}, total=total)
        mark = Marked(who="ta1", when=NOW, why="", student_id="s", target="q6", points=float(run))
        book.append([mark], [replace(total, points=run + 0.5)], after=book.snapshot().state)
        print(run, flush=True)
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="only POSIX kills in the middle of a step")
def test_a_killed_writer_leaves_a_whole_book(tmp_path: Path, start_script: Start) -> None:
    moments = random.Random(3)
    kept = 0
    for attempt in range(10):
        writer = start_script(WRITER, tmp_path)
        # a few rounds, however slow the machine is, then somewhere within one; the first is killed while it
        # makes the book
        told = [writer.said.readline().strip() for _ in range(moments.randint(2, 4) if attempt else 0)]
        time.sleep(moments.uniform(0.0, 0.03 if attempt else 0.01))
        writer.kill()
        told += writer.rest().split()
        writer.close()
        done = [int(line) for line in told if line != "ready"]
        kept = max([kept, *done])
        with Gradebook(tmp_path) as book:
            runs = book.runs("s") if book.students() else ()
            assert runs == tuple(range(1, len(runs) + 1)) and len(runs) >= kept, "what was told is kept"
            for run in runs[-2:]:
                assert len(book.evidence("s", run).notes[0].text) == 20_000
                assert len(book.images("s", run)["own.png"]) == 4_000_000
            marks = [edit.points for edit in book.edits()]
            after = [total.points for total in book.totals("s") if total.points and total.points % 1]
            assert [mark + 0.5 for mark in marks if mark is not None] == after, "together or not at all"
        if runs:
            raw = sqlite3.connect(tmp_path / "gradebook.sqlite")
            assert raw.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            assert raw.execute("PRAGMA foreign_key_check").fetchall() == []
            raw.close()
    assert kept > 9, "the writer got somewhere each time"
