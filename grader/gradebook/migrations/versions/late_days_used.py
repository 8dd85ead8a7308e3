"""The late days of the course that a student used for an assignment, with the total that came of it."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Add the column; in rows that are there it stays empty: no late days were used."""
    op.add_column("totals", sa.Column("tokens", sa.Integer))
