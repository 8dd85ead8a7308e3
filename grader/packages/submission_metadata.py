"""What the other grader says of a submission, and what a student is shown at once because of it.

It reads Gradescope's `submission_metadata.json` as far as it can be believed: number, time, earlier tries.
What is malformed is left out; PrairieLearn says none of it. `shown_feedback` is the one place where a package
asks whether hidden checks are shown, and how many such tries are left. It decides nothing about lateness, and
nothing about points.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from grader.domain.assignment import Assignment

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


# --- feedback --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ShownFeedback:
    """What a student is shown at once.

    Attributes:
        hidden_checks: What hidden checks found is shown now, and not only when grades are published.
        tries_left: How many more times that will be so; None: there is no rule.
    """

    hidden_checks: bool = False
    tries_left: int | None = None


def shown_feedback(assignment: Assignment, metadata: Mapping[str, Any]) -> ShownFeedback:
    """What is shown of this submission: without a rule, hidden checks wait until grades are published.

    Args:
        assignment: Its rule on tries, where it has one.
        metadata: What the other grader says of the submission and of earlier ones.
    """
    return ShownFeedback()
