"""Forgets persons: first what would go, then files, then the gradebook, then the pages of those who stay.

The gradebook goes last, because it knows by which names the persons are mentioned: whatever interrupts the
work, the same command goes on with what is left. A note without anybody's id stands in the results folder
until the database holds no trace. It never decides who is to be forgotten, and it releases nothing.
Tests: `tests/privacy/test_forgetting.py`.
"""

import contextlib
import difflib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from grader.course.locate import located_course
from grader.domain.errors import GraderError, UsageError
from grader.domain.formatting import counted, listed
from grader.domain.mentions import Mentions
from grader.files import atomic
from grader.gradebook import Gradebook
from grader.gradebook.forgotten_rows import PersonalRecords
from grader.gradebook.person_rows import KnownPersons
from grader.privacy.file_cleaning import FileFate
from grader.privacy.kept_files import (
    UNFINISHED,
    KeptFile,
    KeptPlaces,
    carry_out,
    kept_files,
    kept_places,
    stands_as_id,
    with_names,
)
from grader.results.class_pages import FILE as PAGES
from grader.results.class_pages import noted, write_pages
from grader.results.current_state import reported_results
from grader.results.folder_use import used_alone

FEWEST_DIGITS = 5  # of what is an id, whether or not it is known
_NOTE = (
    "Persons are being forgotten in this folder. `grader forget` removes this file when nothing is left.\n"
)


@dataclass(frozen=True)
class ForgetRequest:
    """Who is to be forgotten, and where.

    Attributes:
        out: The folder of the results.
        who: Who runs the command.
        student_id: The person; None: all about whom nothing was added since `before`.
        names: Names of the person that the grader cannot know.
        also: Further files and folders that are cleaned as a whole.
        course: The course's folder; None: found upward from the working directory.
        gradebook: An SQLAlchemy URL; None: `gradebook.sqlite` in `out`.
    """

    out: Path
    who: str
    student_id: str | None = None
    before: datetime | None = None
    names: tuple[str, ...] = ()
    also: tuple[Path, ...] = ()
    course: Path | None = None
    gradebook: str | None = None


@dataclass(frozen=True)
class ForgetPlan:
    """What goes when persons are forgotten.

    Attributes:
        ids: Theirs, sorted.
        rows: Table of the gradebook -> how many of its rows go or change.
        files: Those that mention the persons.
        resumes: Whether an earlier command was cut short before the database was without traces.
    """

    ids: tuple[str, ...]
    mentions: Mentions
    places: KeptPlaces
    rows: Mapping[str, int]
    files: tuple[KeptFile, ...]
    resumes: bool = False

    @property
    def going(self) -> tuple[KeptFile, ...]:
        """The files that are removed or written again."""
        return tuple(file for file in self.files if file.cleaned.fate is not FileFate.LEFT)

    @property
    def left(self) -> tuple[KeptFile, ...]:
        """The files that a person must decide about."""
        return tuple(file for file in self.files if file.cleaned.fate is FileFate.LEFT)


@dataclass(frozen=True)
class Forgotten:
    """What became of it.

    Attributes:
        rows: Table of the gradebook -> how many of its rows were removed or changed.
        left: What still mentions the persons, a clause each.
        is_finished: Whether nothing is left that the command itself can do.
        remarks: Sentences about what a person should know.
    """

    plan: ForgetPlan
    rows: Mapping[str, int] = field(default_factory=dict)
    left: tuple[str, ...] = ()
    is_finished: bool = True
    remarks: tuple[str, ...] = ()


def planned(request: ForgetRequest) -> ForgetPlan:
    """What would go; nothing is changed.

    Raises:
        UsageError: Nothing is kept about the person, or it is not known whose a submission is.
    """
    with _records(request) as records:
        return _plan(request, records)


def forget(request: ForgetRequest, *, clock: Callable[[], datetime]) -> Forgotten:
    """Forget persons, as far as it is possible; the same request goes on where it was interrupted.

    Args:
        clock: The time, with its zone.

    Raises:
        UsageError: As of `planned`, or somebody works on the folder; nothing was changed then.
    """
    with _records(request) as records:
        with contextlib.ExitStack() as alone:
            alone.enter_context(used_alone(request.out))
            plan = _plan(request, records)
            for out in plan.places.results:
                if out != request.out.resolve():
                    alone.enter_context(used_alone(out))
            failed = carry_out(plan.going, plan.mentions)
            if failed:
                stuck = tuple(f"{file.path}: {reason}" for file, reason in failed)
                remark = (
                    "The gradebook is cleaned last, once all files are: remove the cause and run this again."
                )
                return Forgotten(plan, {}, stuck, is_finished=False, remarks=(remark,))
            rows = _forget_rows(request, records, plan, clock)
        remarks = _renewed(request, plan, clock)
        left = [f"{file.path}: {file.cleaned.why}" for file in kept_files(plan.places, plan.mentions)]
        if records.exists():
            left += [f"{records.name}: {place}" for place in records.left(plan.mentions)]
    return Forgotten(plan, rows, tuple(left), is_finished=True, remarks=tuple(remarks))


@contextlib.contextmanager
def _records(request: ForgetRequest) -> Iterator[PersonalRecords]:
    if not request.out.is_dir():
        raise UsageError(f"{request.out}: there is no such folder. Give the --out folder of `grader grade`.")
    records = PersonalRecords(request.out, request.gradebook)
    try:
        yield records
    finally:
        records.close()


def _plan(request: ForgetRequest, records: PersonalRecords) -> ForgetPlan:
    has_book = records.exists()
    people = records.persons() if has_book else KnownPersons({}, {})
    ids = _chosen(request, people)
    places = kept_places(request.out, records.places() if has_book else (), request.also)
    mentions = with_names(places, people.mentions(ids))
    mentions = replace(mentions, names=mentions.names | frozenset(request.names))
    files = tuple(kept_files(places, mentions)) if ids else ()
    resumes = (request.out / UNFINISHED).exists()
    rows = records.counts(ids, mentions) if has_book and ids else {}
    if request.student_id is not None and not resumes:
        if not (rows or files):
            raise _nobody(request, people)
        if _may_be_a_word(request.student_id, people) and not stands_as_id(places, request.student_id):
            raise UsageError(
                f"{request.out}: '{request.student_id}' is nobody's id, and yet it is read in "
                f"{counted(len(files), 'file')}. Nothing was forgotten. {_advice(request, people)}"
            )
    return ForgetPlan(tuple(sorted(ids)), mentions, places, rows, files, resumes)


def _chosen(request: ForgetRequest, people: KnownPersons) -> frozenset[str]:
    """The ids of those who are to be forgotten."""
    if request.student_id is not None:
        held = people.carried.get(request.student_id, ())
        if held:
            raise UsageError(
                f"{listed(held)} carries the id {request.student_id} in its files, and nobody knows whose it "
                f"is. Say so with `grader owner`, or forget {'it' if len(held) == 1 else 'them'} first. "
                "Nothing was forgotten."
            )
        return frozenset({request.student_id})
    if request.before is None:
        raise UsageError("Say who is to be forgotten: an ID, or all of whom nothing is newer with --before.")
    limit = request.before.astimezone(UTC).isoformat()
    return frozenset(one for one, person in people.by_id.items() if person.last and person.last < limit)


def _nobody(request: ForgetRequest, people: KnownPersons) -> UsageError:
    return UsageError(
        f"{request.out}: nothing is kept about '{request.student_id}'. {_advice(request, people)}"
    )


def _advice(request: ForgetRequest, people: KnownPersons) -> str:
    similar = difflib.get_close_matches(str(request.student_id), people.by_id, n=1, cutoff=0.6)
    return f"Did you mean {similar[0]}?" if similar else "See scores.csv."


def _may_be_a_word(student_id: str, people: KnownPersons) -> bool:
    """Whether what should be an id, and is not known as one, may be a word, whose every mention would go."""
    return student_id not in people.by_id and sum(map(str.isdigit, student_id)) < FEWEST_DIGITS


def _forget_rows(
    request: ForgetRequest, records: PersonalRecords, plan: ForgetPlan, clock: Callable[[], datetime]
) -> Mapping[str, int]:
    """Clean the gradebook, so that no trace stays in its files."""
    if not records.exists():
        return {}
    unfinished = request.out / UNFINISHED
    atomic.write(unfinished, _NOTE.encode("utf-8"))
    rows: Mapping[str, int] = {}
    if plan.rows:
        rows = records.forget(
            frozenset(plan.ids), plan.mentions, who=request.who, when=clock(), files=len(plan.going)
        )
    records.compact()
    for out in plan.places.results:
        _make_stale(out)
    unfinished.unlink(missing_ok=True)
    return rows


def _make_stale(out: Path) -> None:
    """Note that pages are to be made again: ids of later rows may be those of removed ones."""
    before = noted(out)
    if before is not None:
        document = {"book": before.book, "assignment": before.assignment, "state": None}
        atomic.write(out / PAGES, json.dumps(document).encode("utf-8"))


def _renewed(request: ForgetRequest, plan: ForgetPlan, clock: Callable[[], datetime]) -> list[str]:
    """Make the pages of those who stay again, where the course is found."""
    remarks = []
    for out in plan.places.results:
        before = noted(out)
        if before is None:
            continue
        try:
            with Gradebook(out, request.gradebook, assignment_id=before.assignment) as book:
                if before.assignment not in book.assignments():
                    continue
                assignment = located_course(request.course).assignment(before.assignment)
                reported_results(assignment, book.snapshot(attempts=assignment.compares_attempts))
                write_pages(assignment, book, out, clock(), always_class=True)
        except GraderError as error:
            remarks.append(
                f"{out}: the pages of the class were cleaned and not made again, so their figures still "
                f"count who was forgotten. {error}"
            )
    return remarks
