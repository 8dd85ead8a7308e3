"""The tables of people who mark together, on which no grade depends; `migrations` creates them.

In all of them, `student_id` is a row of the gradebook (see `statements`), that of a team's first member.
"""

from typing import Any

from sqlalchemy import BigInteger, Boolean, Column, Float, Integer, Table, Text

from grader.gradebook.statements import METADATA


def _of_task() -> list[Column[Any]]:
    return [Column(name, Text, primary_key=True) for name in ("assignment_id", "target", "student_id")]


def _with_text() -> list[Column[Any]]:
    texts = ("assignment_id", "target", "student_id", "marker", "text", "at")
    return [Column("id", Integer, primary_key=True), *(Column(name, Text, nullable=False) for name in texts)]


# the state of the gradebook from which the tasks of an assignment were made, and a digest of its targets
BASIS = Table(
    "marking_basis",
    METADATA,
    Column("assignment_id", Text, primary_key=True),
    Column("last_run", Integer, nullable=False),
    Column("last_edit", Integer, nullable=False),
    Column("targets", Text, nullable=False),
)

# One row per student and part that people mark. A team's task is the row of its `leader`; `open` is only ever
# true there, while any member lacks a mark. `mark` is the id of the last decision about it,
# 0 without one; `points` are empty if that withdrew the mark or no longer fits the rubric.
TASKS = Table(
    "marking_tasks",
    METADATA,
    *_of_task(),
    Column("handle", Text, nullable=False),
    Column("place", BigInteger, nullable=False),
    Column("leader", Text, nullable=False),
    Column("team", Integer, nullable=False),
    Column("open", Boolean, nullable=False),
    Column("maximum", Float, nullable=False),
    Column("mark", Integer, nullable=False),
    Column("points", Float),
    Column("marker", Text, nullable=False),
    Column("marked_at", Text, nullable=False),
)

ALLOCATIONS = Table(
    "marking_allocations",
    METADATA,
    *_of_task(),
    Column("second", Boolean, primary_key=True),
    Column("marker", Text, nullable=False),
)

DRAFTS = Table(
    "marking_drafts",
    METADATA,
    *_of_task(),
    Column("marker", Text, primary_key=True),
    Column("content", Text, nullable=False),
    Column("drawn_from", Integer, nullable=False),
    Column("run", Integer),
    Column("at", Text, nullable=False),
)

PRESENCE = Table(
    "marking_presence",
    METADATA,
    *_of_task(),
    Column("marker", Text, primary_key=True),
    Column("since", Text, nullable=False),
    Column("active", Text, nullable=False),
)

SKIPS = Table(
    "marking_skips",
    METADATA,
    *_of_task(),
    Column("marker", Text, primary_key=True),
    Column("at", Text, nullable=False),
)

FLAGS = Table("marking_flags", METADATA, *_with_text())

# the last one of each task and marker counts; `text` is what was chosen, as JSON
SECONDS = Table("marking_seconds", METADATA, *_with_text(), Column("points", Float, nullable=False))

NOTES = Table("marking_notes", METADATA, *_with_text())

LOG = Table("marking_log", METADATA, *_with_text(), Column("action", Text, nullable=False))

# those that are written many times a minute, beside which others may write grades
LIGHT = (BASIS, TASKS, ALLOCATIONS, DRAFTS, PRESENCE, SKIPS, FLAGS, SECONDS, NOTES, LOG)
