"""The first tables: runs with their images, edits, totals. Rows are never changed or deleted."""

import sqlalchemy as sa
from alembic import op

from grader.gradebook.migrations.append_only import forbid_changes

revision = "0001"
down_revision = None

TABLES = ("runs", "images", "run_images", "edits", "totals")


def upgrade() -> None:
    """Create the tables and the triggers that refuse changes."""
    op.create_table(
        "runs",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("assignment_id", sa.Text, nullable=False),
        sa.Column("student_id", sa.Text, nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("who", sa.Text, nullable=False),
        sa.Column("at", sa.Text, nullable=False),
        sa.Column("status", sa.Text),
        sa.Column("submission_digest", sa.Text, nullable=False),
        sa.Column("assignment_digest", sa.Text, nullable=False),
        sa.Column("engine", sa.Text, nullable=False),
        sa.Column("evidence", sa.Text, nullable=False),
        sa.UniqueConstraint("assignment_id", "student_id", "number"),
    )
    op.create_table(
        "images",
        sa.Column("digest", sa.Text, primary_key=True),
        sa.Column("content", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "run_images",
        sa.Column("run_id", sa.Integer, sa.ForeignKey("runs.id"), primary_key=True),
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("digest", sa.Text, sa.ForeignKey("images.digest"), nullable=False),
    )
    op.create_table(
        "edits",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("assignment_id", sa.Text, nullable=False),
        sa.Column("student_id", sa.Text),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("target", sa.Text, nullable=False),
        sa.Column("value", sa.Float),
        sa.Column("comment", sa.Text, nullable=False),
        sa.Column("remarks", sa.Text, nullable=False),
        sa.Column("run", sa.Integer),
        sa.Column("who", sa.Text, nullable=False),
        sa.Column("at", sa.Text, nullable=False),
        sa.Column("why", sa.Text, nullable=False),
    )
    op.create_index("edits_by_student", "edits", ["assignment_id", "student_id"])
    op.create_table(
        "totals",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("assignment_id", sa.Text, nullable=False),
        sa.Column("student_id", sa.Text, nullable=False),
        sa.Column("points", sa.Float),
        sa.Column("decided", sa.Float, nullable=False),
        sa.Column("awaiting", sa.Float, nullable=False),
        sa.Column("maximum", sa.Float, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("who", sa.Text, nullable=False),
        sa.Column("at", sa.Text, nullable=False),
        sa.Column("cause", sa.Text, nullable=False),
    )
    op.create_index("totals_by_student", "totals", ["assignment_id", "student_id"])
    if op.get_bind().dialect.name == "postgresql":
        op.execute(
            "CREATE FUNCTION book_never_changes() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE EXCEPTION 'the gradebook only grows: nothing in % is changed', TG_TABLE_NAME; "
            "END $$"
        )
    for table in TABLES:
        forbid_changes(table)
