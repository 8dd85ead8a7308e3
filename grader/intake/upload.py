"""What was uploaded, as submissions: one file, a folder of submissions, or a zip of them."""

import hashlib
import os
import shutil
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo
from pathlib import Path

from grader.domain.assignment import Assignment
from grader.domain.errors import SubmissionError, UsageError
from grader.domain.submission import AccountedFile, Delivery, Fate, RefusedFile, Submission
from grader.intake.account import Ledger
from grader.intake.archive import MEGABYTE, Caps
from grader.intake.found import Found
from grader.intake.gathering import Gathering
from grader.intake.heap import Heap
from grader.intake.naming import Closeness, name_match, plain, sanitized
from grader.intake.prefixes import handed_in
from grader.intake.unpacking import HERE, Opener, unpacked

CLASS_SIZE = 40  # a class's archive may hold this many times what one student's may
UNPACKED = "unpacked"  # the folder in scratch where a class's archive is unpacked
IN_ZIP = "the time of modification in the zip"
ON_DISK = "the time of modification on the disk"


@dataclass(frozen=True)
class Uploads:
    """What was found.

    Attributes:
        submissions: One per student, sorted by id.
        unmatched: Files that belong to no student, with reasons.
        notes: Sentences about the whole, e.g. an id that two students gave.
        account: Every file of the download, and what became of it.
    """

    submissions: tuple[Submission, ...]
    unmatched: tuple[RefusedFile, ...] = ()
    notes: tuple[str, ...] = ()
    account: tuple[AccountedFile, ...] = ()


def submissions(path: Path, assignment: Assignment, scratch: Path, opener: Opener = HERE) -> Uploads:
    """The submissions at `path`.

    Args:
        path: A submission's file, a folder of submissions (files side by side, or a folder per student), or
            a zip of either, as an LMS gives it.
        assignment: Says how files are named.
        scratch: A folder of ours for what is unpacked; the submissions' files may lie there.
        opener: Who opens archives.

    Raises:
        UsageError: There is nothing at `path`, or nothing there that could be a submission.
    """
    if not path.exists():
        raise UsageError(f"{path}: does not exist. Give a submission's file, a folder of them, or a zip.")
    if path.is_dir():
        return _of_class(path, path.resolve(), _Class(assignment, scratch, opener, from_zip=False))
    if path.suffix.lower() != ".zip":
        return _of_file(path, assignment)
    limit = assignment.limits.archive_mb * MEGABYTE
    caps = Caps(total_bytes=CLASS_SIZE * limit, file_bytes=limit)
    try:
        content = unpacked(path, scratch / UNPACKED, caps, opener)
    except SubmissionError as error:
        raise UsageError(str(error)) from error
    whole = _Class(assignment, scratch, opener, from_zip=True)
    for refused in content.refused:
        whole.ledger.note(refused.name, Fate.REFUSED, reason=refused.reason)
    return _of_class(scratch / UNPACKED, path, whole)


def with_extensions(uploads: Uploads, extensions: Mapping[str, datetime]) -> Uploads:
    """The same with some students' own deadlines; a student who handed nothing in is noted."""
    given = tuple(
        replace(one, delivery=replace(one.delivery, extension=extensions.get(one.student_id)))
        for one in uploads.submissions
    )
    absent = sorted(extensions.keys() - {one.student_id for one in uploads.submissions})
    notes = [f"{one}: has an extension, and nothing under this id is in the download." for one in absent]
    return replace(uploads, submissions=given, notes=(*uploads.notes, *notes))


def in_team(submission: Submission, student_ids: Iterable[str]) -> list[Submission]:
    """A submission of several students, as each one's."""
    team = tuple(sorted(student_ids))
    return [replace(submission, student_id=one, team=team) for one in team]


def _of_file(path: Path, assignment: Assignment) -> Uploads:
    """The one partial submission that a file is."""
    name = plain(handed_in(path.name).name)
    suffixes = [suffix for file in assignment.files for suffix in file.suffixes]
    if Path(name).suffix.lower() not in suffixes or not path.is_file():
        raise UsageError(
            f"{path.name}: is not a submission's file ({', '.join(suffixes)}), a folder, or a zip. Give one."
        )
    match = name_match(name, assignment.file_stem)
    student_id = sanitized(match.student_id or Path(name).stem)
    files = (path,)
    account = (AccountedFile(path.name, Fate.MATCHED, student_id),)
    submission = Submission(student_id, assignment.id, files, _digest(files), partial=True)
    return Uploads((submission,), account=account)


def _of_class(folder: Path, source: Path, whole: "_Class") -> Uploads:
    """The submissions in a folder; `source` is what it was, or the zip that it came from."""
    whole.gathering.gather(folder, source.stem)
    uploads = whole.uploads()
    if not uploads.submissions:
        stem = whole.assignment.file_stem.replace("{student_id}", "<StudentID>")
        unmatched = uploads.unmatched
        why = f" The first of {len(unmatched)} files set aside: {unmatched[0].reason}" if unmatched else ""
        raise UsageError(
            f"{source.name}: holds no submission. Files are named like {stem}.py, side by side "
            f"or in one folder per student.{why}"
        )
    return uploads


class _Class:
    """The heaps of a class, made into submissions."""

    def __init__(self, assignment: Assignment, scratch: Path, opener: Opener, *, from_zip: bool) -> None:
        self.assignment = assignment
        self.ledger = Ledger()
        self.gathering = Gathering(assignment, scratch, opener, self.ledger)
        self._scratch = scratch
        self._from_zip = from_zip

    def uploads(self) -> Uploads:
        """The submissions with unique ids, sorted by id, and the account of all files."""
        notes = list(self.gathering.notes)
        ids: dict[str, str] = {}
        made: list[Submission] = []
        unnamed: dict[str, list[str]] = {}
        heaps = [(*self._id(heap), heap) for heap in self.gathering.heaps.values()]
        for wanted, told, heap in sorted(heaps, key=lambda one: (one[0], one[2].label, one[2].key)):
            student_id = _free(wanted, {one.lower() for one in ids.values()})
            if student_id != wanted:
                notes.append(
                    f"{heap.label}: its files carry the id {wanted}, which another submission has; it is "
                    f"listed as {student_id}. Find out whose it is."
                )
            if heap.lms and not told:
                unnamed.setdefault(heap.lms, []).append(student_id)
            ids[heap.key] = student_id
            team = [student_id]
            for member in heap.members:
                team.append(_free(sanitized(member), {one.lower() for one in ids.values()}))
                ids[f"{heap.key}:{member}"] = team[-1]
            one = self._submission(heap, student_id)
            made += in_team(one, team) if len(team) > 1 else [one]
        for lms, listed in unnamed.items():
            shown = ", ".join(listed[:5]) + (", ..." if len(listed) > 5 else "")
            notes.append(
                f"{len(listed)} submissions carry no student id in their files and are listed under the name "
                f"that {lms} gives them: {shown}."
            )
        account = self.ledger.accounted(ids)
        made.sort(key=lambda one: one.student_id)
        return Uploads(tuple(made), self.ledger.unmatched(), tuple(notes), account)

    def _submission(self, heap: Heap, student_id: str) -> Submission:
        notes = list(heap.notes)
        for one in heap.files:
            note = self._reading(one, student_id)
            if one.own != one.handed.name and one.handed.name:
                notes.append(note)
            if one.path not in heap.unusable:
                self.ledger.note(one.shown, Fate.MATCHED, owner=heap.key, reason=note)
        files = tuple(
            self._named(student_id, one) for one in sorted(heap.files, key=lambda one: (one.name, one.shown))
        )
        hint = IN_ZIP if self._from_zip else ON_DISK
        zone = self.assignment.deadline.tzinfo if self.assignment.deadline else UTC
        hinted_at = _moment(heap.modified, zone or UTC, wall_clock=self._from_zip)
        return Submission(
            student_id,
            self.assignment.id,
            files,
            _digest(files),
            received_at=heap.received_at,
            delivery=Delivery(hinted_at, hint if hinted_at else "", heap.marked_late),
            set_aside=tuple(heap.set_aside),
            notes=tuple(notes),
        )

    def _reading(self, one: Found, student_id: str) -> str:
        """How a name was read that is not quite the one that was asked for; empty when it is."""
        suffix = Path(one.name).suffix.lower()
        if suffix not in {suffix for file in self.assignment.files for suffix in file.suffixes}:
            return ""
        match = name_match(one.name, self.assignment.file_stem)
        exact = match.closeness is Closeness.EXACT and sanitized(match.student_id or "") == student_id
        if exact and one.own == one.name:
            return ""
        asked = self.assignment.file_stem.replace("{student_id}", student_id) + suffix
        return f"{one.own or one.path.name} was taken as {asked}: name it so the next time."

    def _id(self, heap: Heap) -> tuple[str, bool]:
        """The student's id, and whether anything told it: the LMS, the files' names, or the label."""
        matches = [name_match(one.name, self.assignment.file_stem) for one in heap.files]
        carried = {m.student_id for m in matches if m.student_id and m.closeness <= Closeness.NEARLY}
        if heap.known_id:
            others = sorted(carried - {heap.known_id, *heap.members})
            if others:
                heap.notes.append(
                    f"Files are named for {', '.join(others)}, and {heap.lms} says that they are "
                    f"{heap.known_id}'s."
                )
            return sanitized(heap.known_id), True
        if len(carried) > 1:
            heap.notes.append(f"The files carry several ids: {', '.join(sorted(carried))}.")
        for closeness in (Closeness.EXACT, Closeness.NEARLY, Closeness.ID_ONLY):
            ids = Counter(m.student_id for m in matches if m.student_id and m.closeness is closeness)
            if heap.label in ids:
                return sanitized(heap.label), True
            if ids:
                return sanitized(_most_frequent(ids)), True
        if heap.lms:
            return sanitized(heap.label), False
        match = name_match(plain(heap.label), self.assignment.file_stem)
        return sanitized(match.student_id or heap.label), True

    def _named(self, student_id: str, one: Found) -> Path:
        """The file under the student's own name for it, linked or copied into scratch where it differs."""
        if one.path.name == one.name:
            return one.path
        folder = self._scratch / "named" / student_id
        folder.mkdir(parents=True, exist_ok=True)
        target = folder / one.name
        if target.exists():
            return one.path
        try:
            os.link(one.path, target)
        except OSError:
            shutil.copyfile(one.path, target)
        return target


def _free(wanted: str, taken: Iterable[str]) -> str:
    """The id, or the first of `id-2`, `id-3`, ... that nobody has."""
    used = set(taken)
    student_id, number = wanted, 2
    while student_id.lower() in used:
        student_id = f"{wanted}-{number}"
        number += 1
    return student_id


def _most_frequent(names: Mapping[str, int]) -> str:
    most = max(names.values())
    return min(name for name, count in names.items() if count == most)


def _moment(seconds: float, zone: tzinfo, *, wall_clock: bool) -> datetime | None:
    """A time of modification as a moment, None where there is none.

    Args:
        seconds: Since 1970.
        zone: What the moment is told in.
        wall_clock: The seconds are a clock's whose zone nobody knows, as in a zip: it is taken for `zone`.
    """
    if seconds <= 0:
        return None
    if wall_clock:
        return datetime.fromtimestamp(int(seconds), UTC).replace(tzinfo=zone)
    return datetime.fromtimestamp(int(seconds), zone)


def _digest(files: tuple[Path, ...]) -> str:
    """SHA-256 over names and contents, hexadecimal, whatever the order of the files."""
    whole = hashlib.sha256()
    parts = []
    for file in files:
        content = hashlib.sha256()
        with file.open("rb") as stream:
            while chunk := stream.read(1 << 20):
                content.update(chunk)
        parts.append(f"{file.name}\0{content.hexdigest()}\n")
    for part in sorted(parts):
        whole.update(part.encode("utf-8", "surrogateescape"))
    return whole.hexdigest()
