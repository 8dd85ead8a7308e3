"""Findings as the student reads them: per component, and beside the lines that they are about.

It makes the report of each component, with equal sentences said once. It also makes the notes at single
lines: failed checks, forbidden parts, claims and what was observed while the code ran. It never finds
anything itself, and it never decides how many points a finding costs.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from grader.domain.analyzed_program import Place, place_of
from grader.domain.assignment import SUBMISSION, Assignment
from grader.domain.evidence import Blame, Evidence, Finding, FindingKind, Status
from grader.domain.formatting import as_code, named, percent, quoted
from grader.domain.score import ComponentScore, Score
from grader.domain.submission_result import PRYING_WORDS, ReportedCause, reported_causes
from grader.reports.student.code_lines import CodeLine, excerpt
from grader.reports.student.fixes import forbidden_rows


@dataclass(frozen=True)
class CheckRemark:
    """One sentence about one or more checks.

    Attributes:
        titles: What those checks ask for.
        checks: Their ids.
        others: How many of them, besides the first, say the same or are folded under it: see `ReportedCause`.
        verdict: Why it cost nothing, for checks that passed, or went wrong through no fault of the student.
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
        passed: Titles of the checks that passed, without those in `noted` and `advised`.
        noted: Checks that passed, with something that a person should look at.
        advised: Checks that passed, with what would be better.
        count: All of its checks.
    """

    name: str
    share: ComponentScore | None
    passed: tuple[str, ...]
    noted: tuple[CheckRemark, ...]
    advised: tuple[CheckRemark, ...]
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
        """All that is said about it, the most serious first."""
        return (*self.failed, *self.skipped, *self.errored, *self.noted, *self.advised)

    @property
    def passed_count(self) -> int:
        """How many checks passed, with and without a remark."""
        return len(self.passed) + sum(len(remark.checks) for remark in (*self.noted, *self.advised))


def component_reports(
    assignment: Assignment, evidence: Evidence, score: Score
) -> tuple[ComponentReport, ...]:
    """One report per component that has findings, in the assignment's order; the submission itself last."""
    shares = {share.component: share for line in score.lines for share in line.components}
    names = dict.fromkeys(component.name for component in assignment.components)
    names |= dict.fromkeys(finding.component for finding in evidence.findings)
    names.pop(SUBMISSION, None)
    reports = []
    for name in [*names, SUBMISSION]:
        of_component = [finding for finding in evidence.findings if finding.component == name]
        if of_component:
            reports.append(_component_report(name, of_component, shares.get(name), evidence.source))
    return tuple(reports)


def verdict(finding: Finding) -> str:
    """Why a check with a remark costs nothing; empty where that needs no explanation."""
    if finding.has_remark:
        return "The check passed, and this costs no points."
    if finding.status is not Status.ERRORED:
        return ""
    if finding.kind is FindingKind.UNDECIDED:
        return "A person decides this; until then it costs you nothing."
    if finding.blame is Blame.INSTRUCTOR:
        return "This check itself has a mistake, which the instructor will fix. It cost you nothing."
    if finding.blame is Blame.ENGINE:
        return "The grader failed here, not you. It cost you nothing."
    return "This could not be decided automatically, so a person will look at it. It cost you nothing."


def _component_report(
    name: str, findings: Sequence[Finding], share: ComponentScore | None, source: Mapping[str, str] | None
) -> ComponentReport:
    lost = reported_causes([finding for finding in findings if finding.status is not Status.PASSED])

    def remarks(status: Status) -> tuple[CheckRemark, ...]:
        return tuple(_remark(cause, source) for cause in lost if cause.finding.status is status)

    def remarked(passed: Sequence[Finding]) -> tuple[CheckRemark, ...]:
        return tuple(_remark(cause, source) for cause in reported_causes(passed))

    passed = [finding for finding in findings if finding.status is Status.PASSED]
    return ComponentReport(
        name=name,
        share=share,
        passed=tuple(finding.title for finding in passed if not finding.has_remark),
        noted=remarked([finding for finding in passed if finding.flagged]),
        advised=remarked([finding for finding in passed if finding.is_advice]),
        failed=remarks(Status.FAILED),
        skipped=remarks(Status.SKIPPED),
        errored=remarks(Status.ERRORED),
        count=len(findings),
    )


def _remark(cause: ReportedCause, source: Mapping[str, str] | None) -> CheckRemark:
    first = cause.finding
    return CheckRemark(
        titles=tuple(finding.title for finding in cause.findings),
        checks=tuple(finding.check for finding in cause.findings),
        message=first.message,
        hint=first.hint,
        where=first.where,
        others=cause.others_in_words,
        verdict=verdict(first),
        lines=excerpt(source, first.where),
    )


# --- line notes ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LineNote:
    """One remark about one line.

    Attributes:
        where: As the report names the place.
        place: The line; line 0 is a cell as a whole (an output).
        kind: `failed`, `skipped`, `errored`, `noted`, `advised`; `aside` for what costs nothing and needs
            nobody.
        word: What it is, in a word or two.
        title: What the check asks for, or what was seen.
    """

    where: str
    place: Place
    kind: str
    word: str
    title: str = ""
    message: str = ""
    hint: str = ""

    @property
    def asks(self) -> bool:
        """Whether it is in the list of findings."""
        return self.kind != "aside"


def line_notes(
    assignment: Assignment, evidence: Evidence, score: Score, components: Sequence[ComponentReport]
) -> tuple[LineNote, ...]:
    """All remarks that name a line: those of the report, in its order, then asides.

    Args:
        components: What the report says of each, by `component_reports`.
    """
    notes = [
        *_finding_notes(components),
        *_forbidden_notes(assignment, evidence),
        *_pried_notes(evidence),
        *_training_notes(evidence),
        *_claim_notes(score),
        *_aside_notes(assignment, evidence),
    ]
    # several statements of a line may be left out for the same reason
    return tuple(dict.fromkeys(note for note in notes if note.place.file))


def notes_by_line(notes: Sequence[LineNote]) -> Mapping[tuple[str, int], Sequence[LineNote]]:
    """(file or cell, line) -> its notes."""
    by_line: dict[tuple[str, int], list[LineNote]] = {}
    for note in notes:
        by_line.setdefault((note.place.file, note.place.line), []).append(note)
    return by_line


def _place(where: str) -> Place:
    return place_of(where) or Place("", 0)


def _finding_notes(components: Sequence[ComponentReport]) -> Iterator[LineNote]:
    for component in components:
        groups: tuple[tuple[str, str, tuple[CheckRemark, ...]], ...] = (
            ("failed", "✗ To fix", component.failed),
            ("skipped", "– Not tried", component.skipped),
            ("errored", "? Undecided", component.errored),
            ("noted", "✓ Passed, a person will take a look", component.noted),
            ("advised", "✓ Passed, with advice", component.advised),
        )
        for kind, word, remarks in groups:
            for remark in remarks:
                message = " ".join(part for part in (remark.message, remark.verdict) if part)
                yield LineNote(
                    remark.where,
                    _place(remark.where),
                    kind,
                    word,
                    f"`{component.name}`: {remark.titles[0]}",
                    message,
                    remark.hint,
                )


def _forbidden_notes(assignment: Assignment, evidence: Evidence) -> Iterator[LineNote]:
    for row in forbidden_rows(assignment, evidence):
        word = "✗ Not allowed" if row.loses_points else "– Note"
        message = f"{row.reason} {row.consequence}".strip()
        kind = "failed" if row.loses_points else "skipped"
        yield LineNote(row.where, _place(row.where), kind, word, named(row.name), message)


def _pried_notes(evidence: Evidence) -> Iterator[LineNote]:
    for pried in evidence.pried:
        if pried.place is not None:
            title = f"When it ran, this line {PRYING_WORDS[pried.kind]}"
            yield LineNote(str(pried.place), pried.place, "noted", "– A person will take a look", title)


def _training_notes(evidence: Evidence) -> Iterator[LineNote]:
    for training in evidence.trainings:
        if training.where and training.reason:
            yield LineNote(
                training.where,
                _place(training.where),
                "failed",
                "✗ Training",
                "Training ended here",
                training.reason,
            )


def _claim_notes(score: Score) -> Iterator[LineNote]:
    """The accuracy that the student reports in a cell's output, which has no lines of code."""
    claim = score.claim
    if claim is not None and claim.cell:
        reading = f"{percent(claim.accuracy)} is read here as the reported accuracy"
        title = f"{reading}: {quoted(claim.text)}" if claim.text else reading
        yield LineNote(claim.source, Place(claim.cell, 0), "noted", "Reported", title)


def _aside_notes(assignment: Assignment, evidence: Evidence) -> Iterator[LineNote]:
    for near in evidence.near_names:
        title = f"{named(near.found)} was graded as `{near.expected}`"
        yield LineNote(str(near.place), near.place, "aside", "Name", title)
    for value in evidence.chosen if assignment.uses_chosen_values else ():
        title = f"{value.name.replace('_', ' ')}: {as_code(value.value)}"
        yield LineNote(str(value.place), value.place, "aside", "Value", title)
    for omission in evidence.omissions:
        yield LineNote(str(omission.place), omission.place, "aside", "Left out", omission.reason)
