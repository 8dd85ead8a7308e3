"""The table of attacks in a page: `python tests/attacks/table.py docs/security.md` renews it."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from attack import OUTCOMES, attacks
from called import CALL_ATTACKS
from impostors import IMPOSTORS
from retried import RETRIED
from uploads import UPLOADS

BEGIN = "<!-- attacks: made by tests/attacks/table.py -->"
END = "<!-- end of attacks -->"


def with_table(page: str) -> str:
    """The page with the table of all attacks between its marks.

    Raises:
        ValueError: It has no marks.
    """
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"The page has no lines {BEGIN} and {END}. Put them where the table belongs.")
    every = sorted(
        [*attacks(), *UPLOADS, *IMPOSTORS, *RETRIED, *CALL_ATTACKS], key=lambda attack: int(attack.number)
    )
    return f"{before}{BEGIN}\n\n{table(every)}\n\n{END}{after}"


def table(every: Sequence[Any]) -> str:
    """What each attack tries, what stops it and what comes of it, and what the outcomes mean."""
    used = {attack.outcome for attack in every}
    lines = ["| outcome | meaning |", "|---|---|"]
    lines += [f"| {outcome} | {meaning} |" for outcome, meaning in OUTCOMES.items() if outcome in used]
    lines += ["", "| | what it tries | what stops it | outcome |", "|---|---|---|---|"]
    lines += [f"| {a.number} | {a.tries} | {a.stopped_by} | {a.outcome} |" for a in every]
    return "\n".join(lines)


if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.write_text(with_table(path.read_text(encoding="utf-8")), encoding="utf-8", newline="\n")
