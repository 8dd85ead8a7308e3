"""Grades after lateness, sheets of marks, the images of a run, and the accounts of downloads."""

import sqlalchemy as sa
from alembic import op

from grader.gradebook.migrations.append_only import forbid_changes

revision = "0003"
down_revision = "0002"

TABLE = "downloads"


def upgrade() -> None:
    """Add the columns and the table; the new columns of existing rows stay empty."""
    op.add_column("totals", sa.Column("final", sa.Float))
    op.add_column("totals", sa.Column("lateness", sa.Text))
    op.add_column("edits", sa.Column("sheet", sa.Text, nullable=False, server_default=""))
    op.add_column("runs", sa.Column("data_digest", sa.Text))
    op.create_table(
        TABLE,
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("assignment_id", sa.Text, nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("who", sa.Text, nullable=False),
        sa.Column("at", sa.Text, nullable=False),
        sa.Column("record", sa.Text, nullable=False),
    )
    forbid_changes(TABLE)
