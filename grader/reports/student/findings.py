"""Findings as the student reads them: per component, and beside the lines that they are about.

It holds the report of each component, with equal sentences said once, and the notes at single lines:
failed checks, forbidden parts, claims and what was seen while the code ran. It never finds anything
itself, and it never decides how many points a finding costs.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from grader.domain.analyzed_program import Place, place_of
from grader.domain.assignment import SUBMISSION, Assignment
from grader.domain.evidence import Blame, Evidence, Finding, FindingKind, Status
from grader.domain.formatting import as_code, named, percent, quoted
from grader.domain.score import ComponentScore, Score
from grader.domain.submission_result import PRYING_WORDS, ToldCause, told_causes
from grader.reports.student.code_lines import CodeLine, excerpt
from grader.reports.student.fixes import forbidden_rows


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


# --- line notes ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LineNote:
    """One thing about one line.

    Attributes:
        where: As the report names the place.
        place: The line; of a cell as a whole (an output) its line is 0.
        kind: `failed`, `skipped`, `errored`, `noted`; `aside` for what costs nothing and asks nobody.
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
        """Whether it stands in the list of findings."""
        return self.kind != "aside"


def line_notes(assignment: Assignment, evidence: Evidence, score: Score) -> tuple[LineNote, ...]:
    """All that names a line: what the report says about it, in the report's order, then asides."""
    found = [
        *_findings(assignment, evidence, score),
        *_forbidden(assignment, evidence),
        *_pried(evidence),
        *_training(evidence),
        *_claim(score),
        *_asides(evidence),
    ]
    # several statements of a line may be left out for the same reason
    return tuple(dict.fromkeys(note for note in found if note.place.file))


def notes_by_line(notes: Sequence[LineNote]) -> Mapping[tuple[str, int], Sequence[LineNote]]:
    """(file or cell, line) -> its notes."""
    by_line: dict[tuple[str, int], list[LineNote]] = {}
    for note in notes:
        by_line.setdefault((note.place.file, note.place.line), []).append(note)
    return by_line


def _at(where: str) -> Place:
    return place_of(where) or Place("", 0)


def _findings(assignment: Assignment, evidence: Evidence, score: Score) -> Iterator[LineNote]:
    for component in component_reports(assignment, evidence, score):
        groups: tuple[tuple[str, str, tuple[CheckRemark, ...]], ...] = (
            ("failed", "✗ To fix", component.failed),
            ("skipped", "– Not tried", component.skipped),
            ("errored", "? Undecided", component.errored),
            ("noted", "✓ Passed, a person has a look", component.noted),
        )
        for kind, word, remarks in groups:
            for remark in remarks:
                message = " ".join(part for part in (remark.message, remark.verdict) if part)
                yield LineNote(
                    remark.where,
                    _at(remark.where),
                    kind,
                    word,
                    f"`{component.name}`: {remark.titles[0]}",
                    message,
                    remark.hint,
                )


def _forbidden(assignment: Assignment, evidence: Evidence) -> Iterator[LineNote]:
    for row in forbidden_rows(assignment, evidence):
        word = "✗ Not allowed" if row.loses_points else "– Note"
        message = f"{row.reason} {row.consequence}".strip()
        kind = "failed" if row.loses_points else "skipped"
        yield LineNote(row.where, _at(row.where), kind, word, named(row.name), message)


def _pried(evidence: Evidence) -> Iterator[LineNote]:
    for pried in evidence.pried:
        if pried.place is not None:
            told = f"When it ran, this line {PRYING_WORDS[pried.kind]}"
            yield LineNote(str(pried.place), pried.place, "noted", "– A person has a look", told)


def _training(evidence: Evidence) -> Iterator[LineNote]:
    for training in evidence.trainings:
        if training.where and training.reason:
            yield LineNote(
                training.where,
                _at(training.where),
                "failed",
                "✗ Training",
                "Training ended here",
                training.reason,
            )


def _claim(score: Score) -> Iterator[LineNote]:
    """The accuracy that the student reports stands in a cell's output, which has no lines of code."""
    claim = score.claim
    if claim is not None and claim.cell:
        told = f"{percent(claim.accuracy)} is read here as the reported accuracy"
        title = f"{told}: {quoted(claim.text)}" if claim.text else told
        yield LineNote(claim.source, Place(claim.cell, 0), "noted", "Reported", title)


def _asides(evidence: Evidence) -> Iterator[LineNote]:
    for near in evidence.near_names:
        told = f"{named(near.found)} was graded as `{near.expected}`"
        yield LineNote(str(near.place), near.place, "aside", "Name", told)
    for value in evidence.tuned:
        told = f"{value.name.replace('_', ' ')}: {as_code(value.value)}"
        yield LineNote(str(value.place), value.place, "aside", "Value", told)
    for one in evidence.omissions:
        yield LineNote(str(one.place), one.place, "aside", "Left out", one.reason)
