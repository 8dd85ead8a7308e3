"""What the other grader says of a submission: its number, and when it was handed in.

It reads Gradescope's `submission_metadata.json` as far as it can be believed; what is malformed is left out.
PrairieLearn says neither of the two. It decides nothing about lateness.
"""

import json
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

_MOST_BYTES = 20_000_000  # it holds the results of all earlier submissions


def read_metadata(path: Path) -> dict[str, Any]:
    """The document; empty where there is none that can be read."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            return {}
        document = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def received_at(metadata: Mapping[str, Any]) -> datetime | None:
    """When the submission was handed in, with its zone; None where that is not said."""
    try:
        moment = datetime.fromisoformat(str(metadata.get("created_at", "")))
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else None


def submission_number(metadata: Mapping[str, Any]) -> str:
    """The other grader's number of the submission; `1` where it says none."""
    number = str(metadata.get("id", ""))
    return number if number.isdecimal() and len(number) <= 20 else "1"
