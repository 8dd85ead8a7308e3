"""Keeps scores beside the class's files, so that a decision about one student rescores nobody else."""

import contextlib
import functools
import json
from collections import ChainMap
from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from hashlib import sha256
from importlib import resources
from pathlib import Path

from grader.domain.assignment import Assignment
from grader.domain.edit import Edit
from grader.domain.evidence import Evidence
from grader.domain.score import Score
from grader.domain.submission_result import NO_HISTORY, History, Result
from grader.files import atomic
from grader.files.stored_records import validator
from grader.scoring import score

FILE = ".scores"
# the code that scores, and that writes scores into results.json
_CODE = ("grader.domain", "grader.scoring", "grader.reports.results_json", "grader.reports.student")


@dataclass(frozen=True)
class KeptScore:
    """A score, and a key of its inputs.

    Attributes:
        key: Of the evidence, the decisions, the assignment and the grader; it changes with any of them.
        text_digest: Of the result's entry in results.json.
        line: The line in the file.
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
        kept_score: Score = validator(Score).validate_python(json.loads(self.line)["score"])
        return kept_score


def kept_scores(out: Path) -> dict[str, KeptScore]:
    """Student -> the score kept with the class's files, as far as the file is readable."""
    kept: dict[str, KeptScore] = {}
    with contextlib.suppress(OSError, ValueError), (out / FILE).open(encoding="utf-8") as file:
        for line in file:
            match json.loads(line):
                case {"student_id": str(student_id), "key": str(key), "text": str(text_digest)}:
                    kept[student_id] = KeptScore(key, text_digest, line.rstrip("\n"))
    return kept


class KeptScores:
    """Scores that need not be computed again: those that a folder keeps, and those of this process.

    Args:
        assignment: The assignment by which they are scored.
        book: The gradebook of the evidence: see `Gradebook.identity`.
        kept: By student: see `kept_scores`.
    """

    def __init__(
        self, assignment: Assignment, book: str, kept: Mapping[str, KeptScore] | None = None
    ) -> None:
        self._assignment = assignment
        self._kept = dict(kept or {})
        self._scores: MutableMapping[str, Score] = {}
        self._basis = sha256(f"{_code_digest()}{book}{assignment!r}".encode()).hexdigest()
        self._edit_digest_of = functools.cache(_edit_digest)

    def key(self, evidence: Evidence, run: int, edits: Sequence[Edit], history: History = NO_HISTORY) -> str:
        """The key of a score's inputs.

        Args:
            run: The number of the evidence's record in the gradebook.
            edits: All that are about the student, oldest first.
            history: What else the gradebook holds of the student.
        """
        record = f"{evidence.student_id} {run} {evidence.submission_digest} {evidence.graded_at.isoformat()}"
        attempts = [
            f"{attempt.number} {attempt.first_run} {attempt.digest} {attempt.evidence.graded_at.isoformat()}"
            for attempt in history.attempts
        ]
        parts = [self._basis, record, *map(self._edit_digest_of, edits), *attempts, repr(history.late_days)]
        return sha256("\n".join(parts).encode()).hexdigest()

    def of(
        self, evidence: Evidence, run: int | None, edits: Sequence[Edit], history: History = NO_HISTORY
    ) -> Score:
        """The score of one submission.

        Args:
            run: None for evidence that is not in a gradebook yet, so that no score is known.
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

    def tried(self, kept: Mapping[str, KeptScore] | None = None) -> "KeptScores":
        """These scores, to try something out: what is added to them is forgotten unless it is kept.

        Args:
            kept: What a folder keeps now: see `kept_scores`; None: what it kept before.
        """
        other = copy(self)
        other._scores = ChainMap({}, self._scores)
        if kept is not None:
            other._kept = dict(kept)
        return other

    def keep(self) -> None:
        """Add what was tried out to the scores from which it was begun."""
        if isinstance(self._scores, ChainMap):
            added, before = self._scores.maps
            before.update(added)

    def _from_file(self, student_id: str, key: str) -> Score | None:
        kept = self._kept.get(student_id)
        if kept is None or kept.key != key:
            return None
        try:
            return kept.score
        except (ValueError, KeyError):
            self._kept.pop(student_id, None)  # somebody changed the file
            return None

    def text_digest(self, student_id: str, key: str) -> str | None:
        """The digest of the entry in results.json of a score that the folder keeps."""
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
        UsageError: They cannot be written.
    """
    atomic.write_pieces(out / FILE, (f"{line}\n".encode() for line in lines))


def _edit_digest(edit: Edit) -> str:
    """The digest of all that scores depend on: without the run that the person saw."""
    return sha256(repr(replace(edit, run=None)).encode()).hexdigest()


@functools.cache
def _code_digest() -> str:
    """The digest of the code that computes and writes scores: another version may score differently."""
    total = sha256()
    for package in _CODE:
        files = (file for file in resources.files(package).iterdir() if file.name.endswith(".py"))
        for file in sorted(files, key=lambda file: file.name):
            total.update(file.read_bytes())
    return total.hexdigest()
