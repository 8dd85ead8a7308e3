"""One part of a homework: how it is named on the command line, and the sentence about its checks."""

from collections.abc import Sequence
from pathlib import Path

from grader.cli.page import Page
from grader.domain.errors import UsageError
from grader.domain.evidence import Status
from grader.domain.formatting import counted
from grader.domain.program import Omission
from grader.domain.quoting import named
from grader.students.own_check import LocalCheck


def part_and_its_file(words: Sequence[str]) -> tuple[str, Path | None]:
    """The part that is asked for (empty: all), and the file (None: the homework of the folder).

    A single word is a part if it is written like a name and no file is called so.

    Raises:
        UsageError: There are more words than two.
    """
    if len(words) > 2:
        raise UsageError(
            f"grader check takes a part and a file, and got {len(words)} words. "
            "Give them like this: grader check Attention homework.py"
        )
    if len(words) == 2:
        return words[0], Path(words[1])
    if words and (not words[0].isidentifier() or Path(words[0]).exists()):
        return "", Path(words[0])
    return (words[0] if words else ""), None


def show_part_verdict(page: Page, found: LocalCheck, part: str) -> None:
    """What hinders the checks of a part, and what they come to, in a sentence."""
    hindrances = [
        *(_broken(left) for left in found.program.omissions),
        *(
            f"{named(name)}, which `{graded}` uses, is defined nowhere in the file."
            for graded, name in found.program.unresolved
        ),
    ]
    if hindrances:
        page.heading("Notes")
        for note in hindrances:
            page.item("note", note)
    page.verdict(found.passed, part_verdict(found, part))


def _broken(left: Omission) -> str:
    return f"{left.place}: {left.reason}."


def part_verdict(found: LocalCheck, part: str) -> str:
    """The findings of a part in a sentence."""
    findings = found.findings
    passed = sum(finding.status is Status.PASSED for finding in findings)
    if passed == len(findings):
        if passed == 1:
            return f"The public check of `{part}` passes."
        return f"All {passed} public checks of `{part}` pass."
    text = f"{passed} of {counted(len(findings), 'public check')} of `{part}` pass."
    if ours := sum(finding.status is Status.ERRORED for finding in findings):
        text += f" {counted(ours, 'check')} could not be decided, which is not your fault."
    return text
