"""What forgetting needs of the two databases: rows that may go for once, and no trace of them in the file.

In SQLite, what is deleted is overwritten with zeros at once, the file is written again without it, and the
write-ahead log is emptied. PostgreSQL writes its tables again; its own log, its replicas and its backups keep
what they have, and nothing here can change that. It never decides which rows go (`forgotten_rows` does).
Tests: `tests/gradebook/test_forgotten_rows.py`.
"""

import contextlib
from collections.abc import Iterator

from sqlalchemy import Connection, inspect, text


@contextlib.contextmanager
def unguarded(connection: Connection) -> Iterator[None]:
    """Take away, within a transaction, the triggers that refuse changes, and put them back at the end."""
    if connection.dialect.name == "postgresql":
        quote = connection.dialect.identifier_preparer.quote
        names = [quote(name) for name in inspect(connection).get_table_names()]
        for name in names:
            connection.execute(text(f"ALTER TABLE {name} DISABLE TRIGGER USER"))
        yield
        for name in names:
            connection.execute(text(f"ALTER TABLE {name} ENABLE TRIGGER USER"))
        return
    connection.exec_driver_sql("PRAGMA secure_delete = ON")
    triggers = connection.exec_driver_sql("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").all()
    for name, _ in triggers:
        connection.exec_driver_sql(f'DROP TRIGGER "{name}"')
    yield
    for _, statement in triggers:
        connection.exec_driver_sql(statement)


def is_compacted(connection: Connection) -> bool:
    """Write the whole database again without what was deleted; false if somebody else keeps the old log."""
    if connection.dialect.name == "postgresql":
        alone = connection.execution_options(isolation_level="AUTOCOMMIT")
        alone.exec_driver_sql("VACUUM FULL")
        return True
    raw = connection.connection.driver_connection
    assert raw is not None
    raw.execute("PRAGMA secure_delete = ON")
    raw.execute("VACUUM")
    busy, *_ = raw.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    return not busy
