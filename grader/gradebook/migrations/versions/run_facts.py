"""Facts about a run that are needed of a whole class at once, without reading the evidence."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Add the column; in rows that are there it stays empty: their evidence says it."""
    op.add_column("runs", sa.Column("facts", sa.Text))
