"""A class that follows its gradebook: what was added is read, and who changed is scored.

A large class takes seconds to be read and scored, and people who work off a queue change one student at a
time. What was read stays in memory; what it says is always what a new reading would say.
"""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from grader.domain.assignment import Assignment
from grader.domain.edit import Edit, RunChosen
from grader.domain.evidence import Evidence
from grader.domain.score import Score
from grader.gradebook import Gradebook, MarkingRecords, Snapshot, State
from grader.gradebook.row_records import AddedRecords
from grader.reports.results_json.results_schema import DownloadRecord
from grader.reports.whole_class.class_overview import Overview
from grader.reports.whole_class.class_statistics import CheckRate, check_rates
from grader.reports.whole_class.review_cases import Case, cases
from grader.reports.whole_class.similarity_record import FILE as SIMILARITY_FILE
from grader.results.class_files import overview_of
from grader.results.current_state import current_downloads, results_now
from grader.results.kept_scores import KeptScores, kept_scores

_Pairs = Sequence[tuple[Evidence, Score]]
_LateDays = Mapping[str, Mapping[str, int]]
_Key = tuple[int, int, int, _LateDays, Assignment, object]


@dataclass(frozen=True)
class ClassNow:
    """A class as its gradebook has it at a moment.

    Attributes:
        scores: Everybody's by the snapshot, and what else was scored before.
    """

    snapshot: Snapshot
    scores: KeptScores


@dataclass(frozen=True)
class _Known:
    """What was made of one assignment at one state of the gradebook.

    Attributes:
        own_cases: Student -> (the evidence, the score, what a person should look at in them).
        rates: How the checks went, from these findings and waivers.
    """

    key: _Key
    assignment: Assignment
    snapshot: Snapshot
    scores: KeptScores
    downloads: tuple[DownloadRecord, ...]
    own_cases: Mapping[str, tuple[Evidence, Score, tuple[Case, ...]]]
    rates: Sequence[CheckRate]
    overview: Overview


class FollowedClass:
    """A class in the memory of a process that shows it and decides about it again and again.

    Args:
        book: The gradebook; it may be used by several threads.
        out: The folder of the results.
    """

    def __init__(self, book: Gradebook, out: Path) -> None:
        self._book, self._out = book, out
        self._lock = threading.Lock()
        self._known: _Known | None = None

    @property
    def is_read(self) -> bool:
        """Whether the class is in memory already."""
        return self._known is not None

    def overview(self, assignment: Assignment) -> Overview:
        """The class as the gradebook has it at this moment.

        Args:
            assignment: As it is now; another one than before scores the whole class again.

        Raises:
            UsageError: The gradebook cannot be used.
        """
        with self._lock:  # who asks meanwhile gets the same one
            return self._current(assignment).overview

    def now(self, assignment: Assignment) -> ClassNow:
        """The class as the gradebook has it at this moment, for a decision about it.

        Args:
            assignment: As it is now; another one than before scores the whole class again.

        Raises:
            UsageError: The gradebook cannot be used.
        """
        with self._lock:
            known = self._current(assignment)
            return ClassNow(known.snapshot, known.scores)

    def _current(self, assignment: Assignment) -> _Known:
        before = self._known
        if before is not None:
            with self._book.marking() as records:
                state, late_days = records.rows.state(), records.rows.late_days()
            is_same = before.key == self._key(state, late_days, assignment)
            if is_same and before.snapshot.state == state:
                return before
        snapshot = self._snapshot(before.snapshot if before is not None else None, assignment)
        key = self._key(snapshot.state, snapshot.rows.late_days, assignment)
        if before is not None and before.key == key:
            known = replace(before, snapshot=snapshot)
        else:
            known = self._made(snapshot, assignment, before, key)
        self._known = known
        return known

    def _key(self, state: State, late_days: _LateDays, assignment: Assignment) -> _Key:
        """All on which an overview depends; totals only say again what evidence and decisions give."""
        try:
            stat = (self._out / SIMILARITY_FILE).stat()
            similarity: object = (stat.st_ino, stat.st_size, stat.st_mtime_ns)
        except OSError:
            similarity = None
        return state.last_run, state.last_edit, state.last_download, late_days, assignment, similarity

    def _snapshot(self, before: Snapshot | None, assignment: Assignment) -> Snapshot:
        """The state of the gradebook; with an earlier one, only what was added is read."""
        compares = assignment.compares_attempts
        if before is not None and (before.rows.attempts is not None or not compares):
            with self._book.marking() as records:
                added = records.rows.added_since(before.state.last_run, before.state.last_edit)
                followed = _followed(before, added, records, attempts=compares)
            if followed is not None:
                return followed
        return self._book.snapshot(attempts=compares)

    def _made(self, snapshot: Snapshot, assignment: Assignment, before: _Known | None, key: _Key) -> _Known:
        is_same = before is not None and before.assignment == assignment
        if before is not None and is_same:
            scores = before.scores
        else:
            scores = KeptScores(assignment, self._book.identity(), kept_scores(self._out))
        pairs = [(one.evidence, one.score) for one in results_now(assignment, snapshot, scores)]
        own_cases = _own_cases(assignment, pairs, before.own_cases if before is not None and is_same else {})
        if before is not None and is_same and _tells_the_same_of_checks(before.overview.results, pairs):
            rates = before.rates
        else:
            rates = check_rates(assignment, pairs)
        if before is not None and (
            (before.snapshot.state.last_download, before.snapshot.changed_ids())
            == (snapshot.state.last_download, snapshot.changed_ids())
        ):
            downloads = before.downloads
        else:
            downloads = current_downloads(self._book, self._out, snapshot)
        overview = overview_of(
            assignment,
            pairs,
            self._out,
            downloads,
            own_cases={student_id: found for student_id, (_, _, found) in own_cases.items()},
            rates=rates,
        )
        return _Known(key, assignment, snapshot, scores, downloads, own_cases, rates, overview)


def _followed(
    before: Snapshot, added: AddedRecords, records: MarkingRecords, *, attempts: bool
) -> Snapshot | None:
    """A state with what was added since; None if everything must be read again."""
    edits = tuple(edit for _, edit in added.edits)
    rows = set(added.run_rows) | {_row(edit) for edit in edits if isinstance(edit, RunChosen)}
    new = records.rows.snapshot(rows, attempts=attempts)
    if not rows <= new.rows.evidence.keys():
        return None  # a row that is listed under no id at the moment, but may be later
    old_attempts = before.rows.attempts or {}
    rest = {row: found for row, found in old_attempts.items() if row not in rows}
    book_rows = replace(
        before.rows,
        evidence={**before.rows.evidence, **new.rows.evidence},
        edits=(*before.rows.edits, *edits),
        totals={**before.rows.totals, **records.rows.totals_since(before.state.last_total)},
        runs={**before.rows.runs, **new.rows.runs},
        attempts={**rest, **(new.rows.attempts or {})} if attempts else None,
        late_days=new.rows.late_days,
    )
    return Snapshot.of(new.state, book_rows)


def _row(edit: Edit) -> str:
    return edit.student_id or ""


def _own_cases(
    assignment: Assignment,
    pairs: _Pairs,
    before: Mapping[str, tuple[Evidence, Score, tuple[Case, ...]]],
) -> dict[str, tuple[Evidence, Score, tuple[Case, ...]]]:
    """What a person should look at in each result; that of an unchanged one is known."""
    own_cases = {}
    for evidence, score in pairs:
        known = before.get(score.student_id)
        if known is None or known[0] is not evidence or known[1] is not score:
            known = (evidence, score, cases(assignment, evidence, score))
        own_cases[score.student_id] = known
    return own_cases


def _tells_the_same_of_checks(before: _Pairs, now: _Pairs) -> bool:
    """Whether the findings are those of before, and the waivers as well."""
    return len(before) == len(now) and all(
        old is new and old_score.waived == new_score.waived
        for (old, old_score), (new, new_score) in zip(before, now, strict=True)
    )
