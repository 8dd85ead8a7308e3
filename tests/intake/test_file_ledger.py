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


def test_a_name_that_is_no_utf8_is_in_no_sentence_either() -> None:
    """As `unzip` writes names of other systems: neither a database nor a page takes them."""
    name = "w\udcff\n.py"
    ledger = Ledger()
    ledger.note(name, Fate.MATCHED, reason=f"{name} was taken as homework.py.")
    ledger.note("classlist.csv", Fate.REFUSED)
    ledger.accept("classlist.csv", f"{name}: was read.")
    for line in ledger.accounted({}):
        assert "w??.py" in line.reason
        assert line.reason.isprintable() and line.name.isprintable()
