"""The class's salt: a random text of each gradebook, from which its class's hidden splits are drawn."""

import secrets

import sqlalchemy as sa
from alembic import op

from grader.gradebook.migrations.append_only import forbid_changes

revision = "0002"
down_revision = "0001"

TABLE = "class_salt"


def upgrade() -> None:
    """Create the table with its only row, and refuse changes to it."""
    table = op.create_table(
        TABLE,
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("salt", sa.Text, nullable=False),
    )
    op.bulk_insert(table, [{"salt": secrets.token_hex(32)}])
    forbid_changes(TABLE)
