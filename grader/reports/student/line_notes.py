"""What was found out about single lines of a submission, as it stands beside them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from grader.domain.assignment import Assignment
from grader.domain.evidence import Evidence
from grader.domain.formatting import percent
from grader.domain.program import Place, place_of
from grader.domain.quoting import as_code, named, quoted
from grader.domain.score import Score
from grader.domain.watch_notes import WORDS
from grader.reports.student.component_reports import CheckRemark, component_reports
from grader.reports.student.forbidden_parts import forbidden_rows


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
        word = "✗ Not allowed" if row.costs else "– Note"
        message = f"{row.reason} {row.consequence}".strip()
        kind = "failed" if row.costs else "skipped"
        yield LineNote(row.where, _at(row.where), kind, word, named(row.name), message)


def _pried(evidence: Evidence) -> Iterator[LineNote]:
    for pried in evidence.pried:
        if pried.place is not None:
            told = f"When it ran, this line {WORDS[pried.kind]}"
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
