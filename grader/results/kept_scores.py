"""Scores kept beside the class's files, so that a decision about one student scores nobody else again."""

import contextlib
import functools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from importlib import resources
from pathlib import Path

from grader.domain.assignment import Assignment
from grader.domain.edit import Edit
from grader.domain.evidence import Evidence
from grader.domain.score import Score
from grader.domain.student_history import NO_HISTORY, History
from grader.domain.submission_result import Result
from grader.files import atomic
from grader.files.typed_json import validator
from grader.scoring import score

FILE = ".scores"
# the code that scores, and that says what results.json says of it
_CODE = ("grader.domain", "grader.scoring", "grader.reports.results_json", "grader.reports.student")


@dataclass(frozen=True)
class KeptScore:
    """A score, and what it was worked out from.

    Attributes:
        key: Of the evidence, the decisions, the assignment and the grader: another of any has another key.
        text_digest: Of what results.json says of the result.
        line: As it stands in the file.
    """

    key: str
    text_digest: str
    line: str

    @property
    def score(self) -> Score:
        """The score itself.

        Raises:
            ValueError: The file holds something else.
        """
        found: Score = validator(Score).validate_python(json.loads(self.line)["score"])
        return found


def kept_scores(out: Path) -> dict[str, KeptScore]:
    """Student -> the score that was kept with the class's files; nothing of what is not whole."""
    kept: dict[str, KeptScore] = {}
    with contextlib.suppress(OSError, ValueError), (out / FILE).open(encoding="utf-8") as file:
        for line in file:
            match json.loads(line):
                case {"student_id": str(student_id), "key": str(key), "text": str(text_digest)}:
                    kept[student_id] = KeptScore(key, text_digest, line.rstrip("\n"))
    return kept


class KnownScores:
    """Scores that need not be worked out again: those that a folder keeps, and those of this moment.

    Args:
        assignment: What they are scored by.
        book: Where the evidence is from: see `Gradebook.identity`.
        kept: By student: see `kept_scores`.
    """

    def __init__(
        self, assignment: Assignment, book: str, kept: Mapping[str, KeptScore] | None = None
    ) -> None:
        self._assignment = assignment
        self._kept = dict(kept or {})
        self._scores: dict[str, Score] = {}
        self._basis = sha256(f"{_code_digest()}{book}{assignment!r}".encode()).hexdigest()
        self._said = functools.cache(_edit_digest)

    def key(self, evidence: Evidence, run: int, edits: Sequence[Edit], history: History = NO_HISTORY) -> str:
        """Of what a score is worked out from.

        Args:
            run: The number that the record of the evidence has in the gradebook.
            edits: All that are about the student, oldest first.
            history: What else the gradebook holds of the student.
        """
        record = f"{evidence.student_id} {run} {evidence.submission_digest} {evidence.graded_at.isoformat()}"
        attempts = [
            f"{attempt.number} {attempt.first_run} {attempt.digest} {attempt.evidence.graded_at.isoformat()}"
            for attempt in history.attempts
        ]
        parts = [self._basis, record, *map(self._said, edits), *attempts, repr(history.late_days)]
        return sha256("\n".join(parts).encode()).hexdigest()

    def of(
        self, evidence: Evidence, run: int | None, edits: Sequence[Edit], history: History = NO_HISTORY
    ) -> Score:
        """The score of one submission.

        Args:
            run: None for what is in no gradebook yet, of which nothing is known.
            edits: All that are about the student, oldest first.
            history: What else the gradebook holds of the student.
        """
        if run is None:
            return score(self._assignment, evidence, edits=edits, history=history)
        key = self.key(evidence, run, edits, history)
        if key not in self._scores:
            self._scores[key] = self._from_file(evidence.student_id, key) or score(
                self._assignment, evidence, edits=edits, history=history
            )
        return self._scores[key]

    def _from_file(self, student_id: str, key: str) -> Score | None:
        kept = self._kept.get(student_id)
        if kept is None or kept.key != key:
            return None
        try:
            return kept.score
        except (ValueError, KeyError):
            del self._kept[student_id]  # somebody changed the file
            return None

    def text_digest(self, student_id: str, key: str) -> str | None:
        """The digest of what results.json says of a score that the folder keeps."""
        kept = self._kept.get(student_id)
        return kept.text_digest if kept is not None and kept.key == key else None

    def line(self, result: Result, key: str, text_digest: str) -> str:
        """A result's line in the file."""
        student_id = result.score.student_id
        kept = self._kept.get(student_id)
        if kept is not None and (kept.key, kept.text_digest) == (key, text_digest):
            return kept.line
        content = validator(Score).dump_python(result.score, mode="json")
        return json.dumps({"student_id": student_id, "key": key, "text": text_digest, "score": content})


def keep_scores(out: Path, lines: Iterable[str]) -> None:
    """Write the lines of all students.

    Raises:
        UsageError: The disk does not take them.
    """
    atomic.write_pieces(out / FILE, (f"{line}\n".encode() for line in lines))


def _edit_digest(edit: Edit) -> str:
    """Of all that scores hang on: not of the run that the person saw, which the gradebook notes."""
    return sha256(repr(replace(edit, run=None)).encode()).hexdigest()


@functools.cache
def _code_digest() -> str:
    """Of the code that scores and tells of it: another version of the grader may score otherwise."""
    total = sha256()
    for package in _CODE:
        files = (file for file in resources.files(package).iterdir() if file.name.endswith(".py"))
        for file in sorted(files, key=lambda file: file.name):
            total.update(file.read_bytes())
    return total.hexdigest()
