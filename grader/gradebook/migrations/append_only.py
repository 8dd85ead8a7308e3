"""Triggers that refuse changes to a table's rows, for each supported database."""

from alembic import op


def forbid_changes(table: str) -> None:
    """Make a table append-only. On PostgreSQL, the first migration created what its triggers call."""
    dialect = op.get_bind().dialect.name
    if dialect == "postgresql":
        op.execute(
            f"CREATE TRIGGER {table}_never_change BEFORE UPDATE OR DELETE ON {table} "
            "FOR EACH ROW EXECUTE FUNCTION book_never_changes()"
        )
    elif dialect == "sqlite":
        for action in ("UPDATE", "DELETE"):
            op.execute(
                f"CREATE TRIGGER {table}_no_{action.lower()} BEFORE {action} ON {table} BEGIN "
                f"SELECT RAISE(ABORT, 'the gradebook only grows: nothing in {table} is changed'); END"
            )
