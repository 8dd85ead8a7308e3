"""The account of a download: what computers make for themselves is nobody's loss, whatever sentences say."""

from grader.domain.submission import Fate
from grader.intake.downloaded_files import Ledger
from grader.intake.naming import clutter_reason


def test_what_a_computer_made_is_accounted_for_and_missed_by_nobody() -> None:
    """By what the file is: a file that is refused with the same words is told."""
    ledger = Ledger()
    ledger.note(".DS_Store", Fate.REFUSED, reason="Any words.", clutter=True)
    ledger.note("homework.py", Fate.REFUSED, reason=clutter_reason("homework.py"))
    assert [file.name for file in ledger.unmatched()] == ["homework.py"]
    assert [(file.name, file.clutter) for file in ledger.accounted({})] == [
        (".DS_Store", True),
        ("homework.py", False),
    ]
