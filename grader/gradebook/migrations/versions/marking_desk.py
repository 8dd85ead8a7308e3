"""What people need who mark together: tasks, drafts, who has what open, notes, second marks, a log.

No grade depends on these tables: marks are decisions as before. Notes, second marks and the log only grow.
"""

from typing import Any

import sqlalchemy as sa
from alembic import op

from grader.gradebook.migrations.append_only import forbid_changes

revision = "0006"
down_revision = "0005"

GROWING = ("marking_notes", "marking_seconds", "marking_log")


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "marking_basis",
        sa.Column("assignment_id", sa.Text, primary_key=True),
        sa.Column("last_run", sa.Integer, nullable=False),
        sa.Column("last_edit", sa.Integer, nullable=False),
        sa.Column("targets", sa.Text, nullable=False),
    )
    op.create_table(
        "marking_tasks",
        *_of_task(),
        sa.Column("handle", sa.Text, nullable=False),
        sa.Column("place", sa.BigInteger, nullable=False),
        sa.Column("leader", sa.Text, nullable=False),
        sa.Column("team", sa.Integer, nullable=False),
        sa.Column("open", sa.Boolean, nullable=False),
        sa.Column("maximum", sa.Float, nullable=False),
        sa.Column("mark", sa.Integer, nullable=False),
        sa.Column("points", sa.Float),
        sa.Column("marker", sa.Text, nullable=False),
        sa.Column("marked_at", sa.Text, nullable=False),
    )
    op.create_index("marking_tasks_by_place", "marking_tasks", ["assignment_id", "target", "place"])
    op.create_index("marking_tasks_by_handle", "marking_tasks", ["assignment_id", "handle"])
    op.create_index("marking_tasks_by_student", "marking_tasks", ["assignment_id", "student_id"])
    op.create_table(
        "marking_allocations",
        *_of_task(),
        sa.Column("second", sa.Boolean, primary_key=True),
        sa.Column("marker", sa.Text, nullable=False),
    )
    op.create_table(
        "marking_drafts",
        *_of_task(),
        sa.Column("marker", sa.Text, primary_key=True),
        sa.Column("content", sa.Text, nullable=False),
        sa.Column("drawn_from", sa.Integer, nullable=False),
        sa.Column("at", sa.Text, nullable=False),
    )
    op.create_table(
        "marking_presence",
        *_of_task(),
        sa.Column("marker", sa.Text, primary_key=True),
        sa.Column("since", sa.Text, nullable=False),
        sa.Column("active", sa.Text, nullable=False),
    )
    op.create_table(
        "marking_skips",
        *_of_task(),
        sa.Column("marker", sa.Text, primary_key=True),
        sa.Column("at", sa.Text, nullable=False),
    )
    op.create_table("marking_flags", *_with_text())
    op.create_index("marking_flags_by_task", "marking_flags", ["assignment_id", "target", "student_id"])
    op.create_table("marking_notes", *_with_text())
    op.create_index("marking_notes_by_student", "marking_notes", ["assignment_id", "student_id"])
    op.create_table(
        "marking_seconds",
        *_with_text(),
        sa.Column("points", sa.Float, nullable=False),
    )
    op.create_index("marking_seconds_by_task", "marking_seconds", ["assignment_id", "target", "student_id"])
    op.create_table("marking_log", *_with_text(), sa.Column("action", sa.Text, nullable=False))
    op.create_index("marking_log_by_student", "marking_log", ["assignment_id", "student_id"])
    for table in GROWING:
        forbid_changes(table)


def _of_task() -> list[sa.Column[str]]:
    return [sa.Column(name, sa.Text, primary_key=True) for name in ("assignment_id", "target", "student_id")]


def _with_text() -> list[sa.Column[Any]]:
    texts = ("assignment_id", "target", "student_id", "marker", "text", "at")
    return [
        sa.Column("id", sa.Integer, primary_key=True),
        *(sa.Column(name, sa.Text, nullable=False) for name in texts),
    ]
