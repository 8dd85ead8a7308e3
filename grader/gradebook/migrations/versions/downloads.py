"""Grades after lateness, sheets of marks, the images of a run, and the accounts of downloads."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

TABLE = "downloads"


def upgrade() -> None:
    """Add the columns and the table; rows that are there keep what was not recorded empty."""
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
    dialect = op.get_bind().dialect.name
    if dialect == "postgresql":
        op.execute(
            f"CREATE TRIGGER {TABLE}_never_change BEFORE UPDATE OR DELETE ON {TABLE} "
            "FOR EACH ROW EXECUTE FUNCTION book_never_changes()"
        )
    elif dialect == "sqlite":
        for action in ("UPDATE", "DELETE"):
            op.execute(
                f"CREATE TRIGGER {TABLE}_no_{action.lower()} BEFORE {action} ON {TABLE} BEGIN "
                f"SELECT RAISE(ABORT, 'the gradebook only grows: nothing in {TABLE} is changed'); END"
            )
