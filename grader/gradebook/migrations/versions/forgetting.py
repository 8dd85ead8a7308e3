"""What was forgotten about persons, in counts alone, and where the grader wrote files about them."""

import sqlalchemy as sa
from alembic import op

from grader.gradebook.migrations.append_only import forbid_changes

revision = "0007"
down_revision = "0006"

TABLES = ("forgettings", "places")


def upgrade() -> None:
    """Create the tables, and refuse changes to their rows."""
    op.create_table(
        "forgettings",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("at", sa.Text, nullable=False),
        sa.Column("who", sa.Text, nullable=False),
        sa.Column("persons", sa.Integer, nullable=False),
        sa.Column("rows", sa.Text, nullable=False),
        sa.Column("files", sa.Integer, nullable=False),
    )
    op.create_table(
        "places",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("host", sa.Text, nullable=False),
        sa.Column("path", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
    )
    for table in TABLES:
        forbid_changes(table)
