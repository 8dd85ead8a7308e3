"""What a student reads of a result inside another grader: the words of the report, as text and as HTML.

It puts the report's sentences about items and checks together, in the language of the course. It decides
neither points nor who sees what.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from markupsafe import Markup

from grader.domain.assignment import Assignment
from grader.domain.evidence import Evidence, Finding
from grader.domain.formatting import about_file, points, printable
from grader.domain.score import GradeStatus, Score, ScoreLine
from grader.language import Language
from grader.lms.gradescope.gradescope_files import sentences
from grader.reports.student.findings import verdict
from grader.reports.typesetting import language_of, prose
from grader.scoring.lateness import late_record

_LONGEST = 2_000  # characters of one sentence of a student's own making


def shows_hidden_checks(score: Score) -> bool:
    """Whether students see at once what hidden checks found: by the rule on tries, never without it."""
    return score.tries is not None and score.tries.shown


@dataclass(frozen=True)
class ResultTexts:
    """The sentences about one submission."""

    assignment: Assignment
    evidence: Evidence
    score: Score

    @cached_property
    def language(self) -> Language:
        """The language of the reports."""
        return language_of(self.assignment)

    def words(self, sentence: str) -> str:
        """A sentence of ours in the language, with nothing in it that hides or reorders words."""
        return printable(self.language.translated(sentence[:_LONGEST]))

    def html(self, paragraphs: Iterable[str]) -> str:
        """Sentences as HTML."""
        made = Markup("").join(Markup("<p>{}</p>").format(prose(self.words(each))) for each in paragraphs)
        if self.language.direction == "ltr":
            return str(made)
        return str(
            Markup('<div lang="{}" dir="{}">{}</div>').format(
                self.language.code, self.language.direction, made
            )
        )

    def text(self, paragraphs: Iterable[str]) -> str:
        """The same as plain text."""
        return "\n".join(map(self.words, paragraphs))

    def of_line(self, line: ScoreLine) -> Iterator[str]:
        """Why an item has its points, or why they are open."""
        if line.reason:
            yield line.reason
        for share in line.components:
            tally = f"{share.component}: {points(share.points)} of {points(share.maximum)}. {share.reason}"
            yield tally.rstrip()

    def of_finding(self, finding: Finding, seen: Collection[str]) -> Iterator[str]:
        """What a check found.

        Args:
            seen: The checks that the reader sees: no other one is named as the cause.
        """
        titles = {other.check: other.title for other in self.evidence.findings if other.check in seen}
        yield from sentences(finding, cause=titles.get(finding.because or "", ""))
        if cost := verdict(finding):
            yield cost

    def of_whole(self, *, with_points: bool, code_alone: bool = False) -> Iterator[str]:
        """What the submission came to: what is decided, what is open and why.

        Args:
            with_points: The points too, which tell what hidden checks found.
            code_alone: Students can hand in no weights and no report, and names are given: nothing is said of
                files that are missing, nor the notes, which also ask for other names.
        """
        score = self.score
        if with_points:
            known = sum(line.points for line in score.lines if line.points is not None)
            yield f"{points(known)} of {points(score.decided)} points are decided here."
        else:
            yield (
                f"{points(score.decided)} of {points(score.maximum)} points are decided here. Points that "
                "hidden checks have a part in are shown when grades are published."
            )
        if score.tries is not None:
            yield score.tries.reason
        if score.reason and not (code_alone and score.status is GradeStatus.INCOMPLETE):
            yield f"{score.reason.rstrip('.')}."
        for line in score.lines:
            if line.points is None:
                yield f"Open: {line.title} ({points(line.maximum)} points). {line.reason}".rstrip()
        late = score.late
        if late is not None and not (with_points or late.asked):
            late = late_record(self.assignment, self.evidence, None)  # it tells nothing of the total
        if late is not None and (late.penalty or late.asked):
            yield late.reason
        if not code_alone:
            yield from dict.fromkeys(str(note) for note in self.evidence.notes)
        for refused in self.evidence.refused_files:
            if not refused.clutter:
                yield about_file(refused.name, refused.reason)
