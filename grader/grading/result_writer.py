"""What was found out about a submission is kept: in the book, then in the student's report."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from grader.domain.assignment import Assignment
from grader.domain.evidence import Evidence
from grader.domain.result import Result
from grader.domain.submission import Submission
from grader.domain.total import Total
from grader.gradebook import Gradebook
from grader.grading.run_choice import outcome
from grader.results.class_files import report_path, write_student
from grader.results.page_state import writing
from grader.scoring import score


@dataclass(frozen=True)
class Keeper:
    """Keeps what was found out about a submission, and writes its report."""

    assignment: Assignment
    book: Gradebook
    out: Path
    who: str
    allow_lower: bool = False

    def latest(self, student_id: str) -> Evidence:
        """What the student's latest run found out, whether it counts or not."""
        return self.book.evidence(student_id, self.book.runs(student_id)[-1])

    def examined(self, result: Result) -> Evidence:
        """What the run found out that a result is of, also where an earlier one counts in its place."""
        return self.latest(result.evidence.student_id) if result.score.lower else result.evidence

    def latest_images(self, student_id: str) -> dict[str, bytes]:
        """The images of the student's latest run."""
        return self.book.images(student_id, self.book.runs(student_id)[-1])

    def kept(
        self, evidence: Evidence, images: Mapping[str, bytes], now: datetime, *, held: str = ""
    ) -> Result:
        """Score, record and report one submission, with the marks that people gave to the student before.

        Args:
            held: Why nobody knows whose it is; empty when somebody does, or the book knows.
        """
        found = outcome(
            self.assignment,
            self.book,
            evidence,
            who=self.who,
            now=now,
            allow_lower=self.allow_lower,
            held=held,
        )
        result = Result(found.evidence, found.score)
        total = Total.of(result.score, who=self.who, when=now, cause="grade")
        self.book.record(evidence, images, who=self.who, total=total, edits=found.edits)
        shown = images if found.evidence is evidence else self.book.images(evidence.student_id)
        with writing(self.out):
            write_student(self.assignment, result, shown, self.out, now)
        return result

    def known(self, submission: Submission, now: datetime) -> Result:
        """The result of what the book has; what an interruption kept from being written is made up for.

        When it was handed in, and by whom, is taken from the submission as it is now, if it is the one that
        counts.
        """
        student_id = submission.student_id
        evidence = self.book.evidence(student_id)
        now_delivered = replace(
            evidence,
            received_at=submission.received_at,
            delivery=submission.delivery,
            team=submission.team or evidence.team,
            origin=submission.origin,
        )
        if evidence.submission_digest == submission.digest and evidence != now_delivered:
            evidence = now_delivered
            return replace(self.kept(evidence, self.book.images(student_id), now), known=True)
        result = Result(evidence, score(self.assignment, evidence, edits=self.book.edits(student_id)), True)
        if not report_path(self.out, student_id).exists():
            write_student(self.assignment, result, self.book.images(student_id), self.out, now)
        return result
