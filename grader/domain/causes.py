"""Findings of one component by their causes: each cause is told once, before what follows from it."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from grader.domain.evidence import Finding, Status
from grader.domain.formatting import counted


@dataclass(frozen=True)
class ToldCause:
    """A finding whose message is told.

    Attributes:
        others: The findings whose messages are not: they say the same, or are folded under it.
    """

    finding: Finding
    others: tuple[Finding, ...] = ()

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All of them, that of the message first."""
        return (self.finding, *self.others)

    @property
    def others_in_words(self) -> str:
        """How many others there are: `3 more checks fail for this reason`; empty where there are none."""
        count = len(self.others)
        if not count:
            return ""
        match self.finding.status:
            case Status.FAILED:
                return counted(count, "more check fails for this reason", "more checks fail for this reason")
            case Status.SKIPPED:
                return counted(
                    count,
                    "more check was not tried for this reason",
                    "more checks were not tried for this reason",
                )
            case Status.ERRORED:
                return counted(
                    count,
                    "more check is undecided for this reason",
                    "more checks are undecided for this reason",
                )
            case Status.PASSED:
                return counted(count, "more check has this remark", "more checks have this remark")


def told_causes(findings: Sequence[Finding]) -> tuple[ToldCause, ...]:
    """What is told of the findings of one component, in their order.

    A finding that is folded is told under the one that has its cause, if that one is there and did not pass;
    one with the very message of an earlier one, and its status, under the earlier.

    Args:
        findings: Those about which there is something to say.
    """
    lost = {finding.check for finding in findings if finding.status is not Status.PASSED}
    heads = {finding.check for finding in findings if finding.check in lost and finding.because not in lost}
    own = [finding for finding in findings if finding.because not in heads]
    groups: dict[tuple[object, ...], list[Finding]] = {}
    for finding in own:
        said = finding.message or (finding.hint, finding.where, finding.label)
        groups.setdefault((said, finding.status, finding.blame, finding.kind), []).append(finding)
    return tuple(ToldCause(group[0], _others(group, heads, findings)) for group in groups.values())


def _others(
    group: Sequence[Finding], heads: Collection[str], findings: Sequence[Finding]
) -> tuple[Finding, ...]:
    """The other findings that are told with the first of a group, in the order of all findings."""
    same = {finding.check for finding in group}
    causes = same & set(heads)
    return tuple(
        finding
        for finding in findings
        if finding is not group[0] and (finding.check in same or finding.because in causes)
    )
