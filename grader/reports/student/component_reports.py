"""Findings as the student reads them: per component, with equal sentences said once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from grader.domain.assignment import SUBMISSION, Assignment
from grader.domain.causes import ToldCause, told_causes
from grader.domain.evidence import Blame, Evidence, Finding, FindingKind, Status
from grader.domain.score import ComponentScore, Score
from grader.reports.student.excerpt import CodeLine, excerpt


@dataclass(frozen=True)
class CheckRemark:
    """One sentence about one or more checks.

    Attributes:
        titles: What those checks ask for.
        checks: Their ids.
        others: How many of them, beside the first, say the same or are folded under it: see `ToldCause`.
        verdict: Why it cost nothing, for checks that went wrong without the student's fault, or passed.
        lines: The source around `where`.
    """

    titles: tuple[str, ...]
    checks: tuple[str, ...]
    message: str
    hint: str
    where: str
    others: str
    verdict: str
    lines: tuple[CodeLine, ...]


@dataclass(frozen=True)
class ComponentReport:
    """What the checks found out about one component.

    Attributes:
        share: Its points, when they belong to a rubric item.
        passed: Titles of the checks that passed, without those in `noted`.
        noted: Checks that passed, with something that a person has a look at.
        count: All of its checks.
    """

    name: str
    share: ComponentScore | None
    passed: tuple[str, ...]
    noted: tuple[CheckRemark, ...]
    failed: tuple[CheckRemark, ...]
    skipped: tuple[CheckRemark, ...]
    errored: tuple[CheckRemark, ...]
    count: int

    @property
    def right(self) -> bool:
        """Whether every check passed."""
        return self.count > 0 and self.passed_count == self.count

    @property
    def remarks(self) -> tuple[CheckRemark, ...]:
        """All that is said about it, the gravest first."""
        return (*self.failed, *self.skipped, *self.errored, *self.noted)

    @property
    def passed_count(self) -> int:
        """How many checks passed, with and without a remark."""
        return len(self.passed) + sum(len(remark.checks) for remark in self.noted)


def component_reports(
    assignment: Assignment, evidence: Evidence, score: Score
) -> tuple[ComponentReport, ...]:
    """One report per component that has findings, in the assignment's order, the submission itself last."""
    shares = {share.component: share for line in score.lines for share in line.components}
    names = dict.fromkeys(component.name for component in assignment.components)
    names |= dict.fromkeys(finding.component for finding in evidence.findings)
    names.pop(SUBMISSION, None)
    reports = []
    for name in [*names, SUBMISSION]:
        own = [finding for finding in evidence.findings if finding.component == name]
        if own:
            reports.append(_report(name, own, shares.get(name), evidence.source))
    return tuple(reports)


def verdict(finding: Finding) -> str:
    """Why a check costs nothing about which something is said all the same; empty otherwise."""
    if finding.flagged:
        return "The check passed, and this costs no points."
    if finding.status is not Status.ERRORED:
        return ""
    if finding.kind is FindingKind.UNDECIDED:
        return "A person decides this; until then it costs you nothing."
    if finding.blame is Blame.INSTRUCTOR:
        return "This check itself has a mistake, which the instructor fixes. It cost you nothing."
    if finding.blame is Blame.ENGINE:
        return "The grader failed here, not you. It cost you nothing."
    return "This could not be decided automatically, so a person looks at it. It cost you nothing."


def _report(
    name: str, findings: Sequence[Finding], share: ComponentScore | None, source: Mapping[str, str] | None
) -> ComponentReport:
    lost = told_causes([finding for finding in findings if finding.status is not Status.PASSED])

    def remarks(status: Status) -> tuple[CheckRemark, ...]:
        return tuple(_remark(told, source) for told in lost if told.finding.status is status)

    passed = [finding for finding in findings if finding.status is Status.PASSED]
    return ComponentReport(
        name=name,
        share=share,
        passed=tuple(finding.title for finding in passed if not finding.flagged),
        noted=tuple(_remark(told, source) for told in told_causes([one for one in passed if one.flagged])),
        failed=remarks(Status.FAILED),
        skipped=remarks(Status.SKIPPED),
        errored=remarks(Status.ERRORED),
        count=len(findings),
    )


def _remark(told: ToldCause, source: Mapping[str, str] | None) -> CheckRemark:
    first = told.finding
    return CheckRemark(
        titles=tuple(finding.title for finding in told.findings),
        checks=tuple(finding.check for finding in told.findings),
        message=first.message,
        hint=first.hint,
        where=first.where,
        others=told.others_in_words,
        verdict=verdict(first),
        lines=excerpt(source, first.where),
    )
