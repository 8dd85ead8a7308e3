"""What the other grader says of a submission: its number and its time.

It reads Gradescope's `submission_metadata.json` as far as it can be believed. What is malformed is left out;
PrairieLearn says none of it. It decides nothing about lateness, and nothing about points.
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


def moment(text: object) -> datetime | None:
    """A time with its zone; None for anything else."""
    try:
        told = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
    return told if told is not None and told.tzinfo is not None else None


def received_at(metadata: Mapping[str, Any]) -> datetime | None:
    """When the submission was handed in, with its zone; None where that is not said."""
    return moment(metadata.get("created_at"))


def submission_number(metadata: Mapping[str, Any]) -> str:
    """The other grader's number of the submission; `1` where it says none."""
    number = str(metadata.get("id", ""))
    return number if number.isdecimal() and len(number) <= 20 else "1"
