"""Decisions, each with the fields of its kind: every row of `edits` is converted, and the old table stays.

Before, a single number was points, an accuracy, seconds since 1970 or the number of a run, and a single text
was an item, a check, a digest, an id or the name of a file.
"""

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from alembic import op

from grader.domain.errors import UsageError
from grader.gradebook.migrations.append_only import forbid_changes

revision = "0004"
down_revision = "0003"

OLD, TABLE = "edits", "decisions"
AT_ONCE = 1000
Content = dict[str, Any]


def upgrade() -> None:
    """Create the new table, convert the rows, and refuse changes to them."""
    connection = op.get_bind()
    rows = connection.execute(sa.text(f"SELECT * FROM {OLD} ORDER BY id")).mappings().all()
    decisions = op.create_table(
        TABLE,
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("assignment_id", sa.Text, nullable=False),
        sa.Column("student_id", sa.Text),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("content", sa.Text, nullable=False),
        sa.Column("run", sa.Integer),
        sa.Column("who", sa.Text, nullable=False),
        sa.Column("at", sa.Text, nullable=False),
        sa.Column("why", sa.Text, nullable=False),
    )
    new_rows = [converted(dict(row)) for row in rows]
    for first in range(0, len(new_rows), AT_ONCE):
        op.bulk_insert(decisions, new_rows[first : first + AT_ONCE])
    op.create_index("decisions_by_student", TABLE, ["assignment_id", "student_id"])
    if connection.dialect.name == "postgresql" and new_rows:
        op.execute(f"SELECT setval(pg_get_serial_sequence('{TABLE}', 'id'), {new_rows[-1]['id']})")
    forbid_changes(TABLE)


def converted(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of the old table as a row of the new one.

    Raises:
        UsageError: It is of a kind that never existed.
    """
    if row["kind"] not in _CONTENTS:
        raise UsageError(
            f"The gradebook holds an edit of the kind '{row['kind']}', which no version wrote. "
            "Put back a copy of it."
        )
    kind, content = _CONTENTS[row["kind"]]
    kept_columns = ("id", "assignment_id", "student_id", "run", "who", "at", "why")
    return {"kind": kind, "content": json.dumps(content(row)), **{name: row[name] for name in kept_columns}}


def _mark(row: Mapping[str, Any]) -> Content:
    return {
        "target": row["target"],
        "points": row["value"],
        "comment": row["comment"],
        "remarks": json.loads(row["remarks"]),
        "sheet": row["sheet"],
    }


def _release(row: Mapping[str, Any]) -> Content:
    lines = [[target, float(points) if points else None] for target, points in json.loads(row["remarks"])]
    return {"way": row["target"], "points": row["value"], "lines": lines}


def _run(row: Mapping[str, Any]) -> Content:
    """The content of a run choice; only the reason, in words, holds the totals before and after."""
    number = None if row["value"] is None else int(row["value"])
    return {"number": number, "because": row["target"] or None}


def _moment(seconds: float | None) -> str | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat()


def _waiver(*, lifted: bool) -> Callable[[Mapping[str, Any]], Content]:
    return lambda row: {"check": row["target"], "lifted": lifted}


def _ruling(*, counts: bool) -> Callable[[Mapping[str, Any]], Content]:
    return lambda row: {"counts": counts, "digest": row["target"] or None}


def _listing(*, by_person: bool, held: bool) -> Callable[[Mapping[str, Any]], Content]:
    return lambda row: {"listed_as": row["target"], "by_person": by_person, "held": held}


_CONTENTS: dict[str, tuple[str, Callable[[Mapping[str, Any]], Content]]] = {
    "mark": ("mark", _mark),
    "waive": ("waiver", _waiver(lifted=False)),
    "unwaive": ("waiver", _waiver(lifted=True)),
    "no_grade": ("ruling", _ruling(counts=False)),
    "waive_missing": ("ruling", _ruling(counts=True)),
    "claim": ("claim", lambda row: {"accuracy": row["value"]}),
    "received": ("received", lambda row: {"digest": row["target"], "moment": _moment(row["value"])}),
    "in_time": ("in_time", lambda row: {"digest": row["target"]}),
    "extension": ("extension", lambda row: {"deadline": _moment(row["value"])}),
    "run": ("run", _run),
    "owner": ("listing", _listing(by_person=True, held=False)),
    "nobodys": ("listing", _listing(by_person=True, held=True)),
    "matched": ("listing", _listing(by_person=False, held=False)),
    "held": ("listing", _listing(by_person=False, held=True)),
    "released": ("release", _release),
    "accepted": ("acceptance", lambda row: {"file": row["target"] or None}),
}
"""Old kind -> the new one, and the function that converts the row's other columns."""
