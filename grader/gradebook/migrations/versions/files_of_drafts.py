"""Which run's files a draft is about, so that it is told when others count."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Add the column; of drafts that are there nobody knows it."""
    op.add_column("marking_drafts", sa.Column("run", sa.Integer))
