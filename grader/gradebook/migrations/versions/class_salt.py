"""The class's salt: a random text of each book's own, from which the hidden splits of its class are drawn."""

import secrets

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

TABLE = "class_salt"


def upgrade() -> None:
    """Make the table with its one row, and refuse changes of it."""
    table = op.create_table(
        TABLE,
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("salt", sa.Text, nullable=False),
    )
    op.bulk_insert(table, [{"salt": secrets.token_hex(32)}])
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
