"""What was uploaded, as submissions: one file, a folder of submissions, or a zip of them."""

import hashlib
import os
import shutil
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from pathlib import Path, PurePosixPath

from grader.domain.assignment import MEGABYTE, Assignment
from grader.domain.errors import SubmissionError, UsageError
from grader.domain.formatting import about_file, file_named
from grader.domain.submission import (
    AccountedFile,
    Delivery,
    Fate,
    KnownUpload,
    Lacking,
    Origin,
    RefusedFile,
    Submission,
)
from grader.files.file_names import plain
from grader.intake.archive_pieces import Caps
from grader.intake.downloaded_files import DownloadedItem, Ledger
from grader.intake.naming import ANY_ID, Closeness, name_match
from grader.intake.ownership import Carried, Verdict, are_alike, carried, listed_as, verdicts
from grader.intake.student_files import StudentFiles
from grader.intake.unpacking import HERE, Opener, unpacked
from grader.intake.upload_grouping import Gathering
from grader.lms.downloads import read_name
from grader.lms.roster import Directory

CLASS_SIZE = 40  # a class's archive may hold this many times what one student's may
UNPACKED = "unpacked"  # the folder in scratch where a class's archive is unpacked
Lists = Callable[[Path], Directory | None]  # reads a table; None when it is not a list of the class
IN_ZIP = "the time of modification in the zip"
ON_DISK = "the time of modification on the disk"
FARTHEST_EAST = timezone(timedelta(hours=14))  # where a clock's time comes first


@dataclass(frozen=True)
class Uploads:
    """What was found.

    Attributes:
        submissions: One per student, sorted by id.
        unmatched: Files that belong to no student, with reasons.
        notes: Sentences about the whole, without names of people.
        account: Every file of the download, and what became of it.
        moved: What turned out about uploads that the gradebook knows, and that it lists otherwise.
        lacking: What an LMS lists and its download lacks.
        keys: `Origin.key` of all uploads that are in it, or should be.
    """

    submissions: tuple[Submission, ...]
    unmatched: tuple[RefusedFile, ...] = ()
    notes: tuple[str, ...] = ()
    account: tuple[AccountedFile, ...] = ()
    moved: tuple[Verdict, ...] = ()
    lacking: tuple[Lacking, ...] = ()
    keys: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Known:
    """What is known of a class before its upload is looked at.

    Attributes:
        directory: What the LMS's list of the class says.
        lists: Reads such a list where one lies in the download, beside what the LMS put there.
        uploads: Those that the gradebook has results of.
    """

    directory: Directory = field(default_factory=Directory)
    lists: Lists = lambda _: None
    uploads: Sequence[KnownUpload] = ()


NOTHING_KNOWN = Known()


def submissions(
    path: Path,
    assignment: Assignment,
    scratch: Path,
    opener: Opener = HERE,
    known: Known = NOTHING_KNOWN,
    *,
    until: datetime | None = None,
) -> Uploads:
    """The submissions at `path`.

    Args:
        path: A submission's file, a folder of submissions (files side by side, or a folder per student), or
            a zip of either, as an LMS gives it.
        assignment: Says how files are named.
        scratch: A folder of ours for what is unpacked; the submissions' files may lie there.
        opener: Who opens archives.
        known: What is known of the class.
        until: What an LMS received later is left alone, so that earlier attempts count; None: the last do.

    Raises:
        UsageError: There is nothing at `path`, or nothing there that could be a submission.
    """
    if not path.exists():
        raise UsageError(f"{path}: does not exist. Give a submission's file, a folder of them, or a zip.")
    if path.is_dir():
        whole = _Class(assignment, scratch, opener, known, from_zip=False, until=until)
        return _of_class(path, path.resolve(), whole)
    if path.suffix.lower() != ".zip":
        return _of_file(path, _Class(assignment, scratch, opener, known, from_zip=False))
    limit = assignment.limits.archive_mb * MEGABYTE
    caps = Caps(total_bytes=CLASS_SIZE * limit, file_bytes=limit)
    try:
        content = unpacked(path, scratch / UNPACKED, caps, opener)
    except SubmissionError as error:
        raise UsageError(str(error)) from error
    whole = _Class(assignment, scratch, opener, known, from_zip=True, until=until)
    for refused in content.refused:
        whole.ledger.note(refused.name, Fate.REFUSED, reason=refused.reason, clutter=refused.clutter)
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


def _of_file(path: Path, whole: "_Class") -> Uploads:
    """The one partial submission that a file is."""
    name = plain(read_name(path.name).name)
    suffixes = [suffix for file in whole.assignment.files for suffix in file.suffixes]
    if Path(name).suffix.lower() not in suffixes or not path.is_file():
        raise UsageError(
            f"{path.name}: is not a submission's file ({', '.join(suffixes)}), a folder, or a zip. Give one."
        )
    whole.gathering.gather_file(path)
    made = whole.uploads()
    alone = tuple(replace(one, partial=True, notes=(), delivery=Delivery()) for one in made.submissions)
    account = tuple(replace(one, reason="") for one in made.account)
    return replace(made, submissions=alone, account=account)


def _of_class(folder: Path, source: Path, whole: "_Class") -> Uploads:
    """The submissions in a folder; `source` is what it was, or the zip that it came from."""
    whole.gathering.gather(folder, source.stem)
    uploads = whole.uploads()
    if not uploads.submissions and not whole.gathering.heaps:
        stem = whole.assignment.file_stem.replace("{student_id}", "<StudentID>")
        unmatched = uploads.unmatched
        why = f" The first of {len(unmatched)} files set aside: {unmatched[0].reason}" if unmatched else ""
        raise UsageError(
            f"{source.name}: holds no submission. Files are named like {stem}.py, side by side "
            f"or in one folder per student.{why}"
        )
    return uploads


@dataclass(frozen=True)
class _Upload:
    """A heap, as one student's.

    Attributes:
        owner: What its files stand under in the account.
        files: Those that count, under the student's own names for them.
        digest: Of them.
    """

    heap: StudentFiles
    owner: str
    origin: Origin
    files: tuple[Path, ...]
    digest: str


class _Class:
    """The heaps of a class, made into submissions."""

    def __init__(
        self,
        assignment: Assignment,
        scratch: Path,
        opener: Opener,
        known: Known,
        *,
        from_zip: bool,
        until: datetime | None = None,
    ) -> None:
        self.assignment = assignment
        self.ledger = Ledger()
        self.gathering = Gathering(assignment, scratch, opener, self.ledger, until)
        self._scratch = scratch
        self._known = known
        self._from_zip = from_zip

    def uploads(self) -> Uploads:
        """The submissions with unique ids, sorted by id, and the account of all files."""
        heaps = list(self.gathering.heaps.values())
        names = carried(heaps, self.assignment)
        found = [self._owned(heap, says) for heap, says in zip(heaps, names, strict=True)]
        whose = verdicts(
            {one.origin.key: (one.origin, one.digest) for own in found for one in own},
            self._directory(),
            self._known.uploads,
        )
        ids: dict[str, str] = {}
        made: list[Submission] = []
        for own, says in zip(found, names, strict=True):
            for one in own:
                verdict = whose[one.origin.key] = _unclear(whose[one.origin.key], one, says)
                ids |= dict.fromkeys((one.owner, *one.heap.parts), verdict.student_id)
            counting = [one for one in own if whose[one.origin.key].counts]
            team = tuple(sorted(whose[one.origin.key].student_id for one in counting))
            for one in counting:
                submission = self._submission(one, whose[one.origin.key], says)
                made.append(replace(submission, team=team if len(own) > 1 else ()))
        verdicts_told = [
            (whose[one.origin.key], _whose(one.heap, whose[one.origin.key], says))
            for own, says in zip(found, names, strict=True)
            for one in own
        ]
        notes = (*self.gathering.notes, *_notes(verdicts_told))
        account = self.ledger.accounted(ids)
        made.sort(key=lambda one: one.student_id)
        lacking = tuple(self.gathering.lacking)
        # the verdicts are also on uploads of earlier downloads
        keys = {one.origin.key for own in found for one in own} | {one.key for one in lacking}
        return Uploads(
            submissions=tuple(made),
            unmatched=self.ledger.unmatched(),
            notes=notes,
            account=account,
            moved=_moved(whose.values()),
            lacking=lacking,
            keys=frozenset(keys),
        )

    def _directory(self) -> Directory:
        """What the LMS's list of the class says: one that was given, or one beside what the LMS made."""
        heaps = self.gathering.heaps.values()
        places = {PurePosixPath(one.shown).parent for heap in heaps if heap.lms for one in heap.items}
        for table in self.gathering.tables:
            found = self._known.lists(table.path)
            if found is None:
                continue
            self.ledger.accept(table.shown, f"{table.path.name}: was read: it is the list of the class.")
            if not self._known.directory.students and PurePosixPath(table.shown).parent in places:
                return found
            break
        return self._known.directory

    def _owned(self, heap: StudentFiles, says: Carried) -> list[_Upload]:
        """A heap as the upload of each who handed it in."""
        # the same place in another download may be another's, but whoever has one id there is one student
        key = heap.key if heap.lms else f"{heap.key}:{says.student_id.casefold()}"
        upload = heap.items[0].path.name if heap.known_id and heap.items else _upload(heap)
        nameless = heap.label.rpartition("_")[2] if heap.called.get("") else upload
        own = listed_as(key, heap.lms, heap.number, nameless)
        origin = Origin(key, upload, own, heap.lms, heap.number, carries=says.student_id)
        files = tuple(
            self._named(own, one) for one in sorted(heap.files, key=lambda one: (one.name, one.shown))
        )
        limits = self.assignment.limits
        most = max(limits.archive_mb, limits.checkpoint_mb, limits.file_mb, limits.notebook_mb)
        digest = _digest(files, most * MEGABYTE)
        made = []
        for owner, student_id in (
            (heap.key, heap.known_id or ""),
            *((f"{heap.key}:{m}", m) for m in heap.members),
        ):
            one = replace(origin, person=heap.called.get(student_id, ""), known_id=student_id)
            if owner != heap.key:
                key = f"{origin.key}:{student_id}"
                one = replace(one, key=key, listed_as=listed_as(key, "", "", upload))
            made.append(_Upload(heap, owner, one, files, digest))
        return made

    def _submission(self, one: _Upload, verdict: Verdict, says: Carried) -> Submission:
        heap, student_id = one.heap, verdict.student_id
        asked = ANY_ID if heap.members else verdict.origin.asked_id(student_id)
        own = (heap.known_id, *heap.members) if heap.members else (asked,)
        notes = [*heap.notes, *_whose(heap, verdict, says)]
        for file in heap.files:
            note = self._reading(file, asked, own)
            if file.own != file.handed.name and file.handed.name:
                notes.append(about_file(file.own or file.path.name, note))
            if file.path not in heap.unusable and one.owner == heap.key:
                self.ledger.note(file.shown, Fate.MATCHED, owner=heap.key, reason=note)
        return Submission(
            student_id,
            self.assignment.id,
            one.files,
            one.digest,
            received_at=heap.received_at,
            delivery=self._delivery(heap),
            set_aside=tuple(heap.set_aside),
            notes=tuple(notes),
            origin=verdict.origin,
            held=verdict.held,
        )

    def _delivery(self, heap: StudentFiles) -> Delivery:
        """What is known of when it came, besides the moment that the LMS records."""
        deadline = self.assignment.deadline
        zone = (deadline.tzinfo if deadline else None) or UTC
        if heap.received_clock is not None and heap.received_at is None:
            clock = heap.received_clock
            hint = f"the time that {heap.lms} tells without its zone"
            is_late = deadline is not None and clock.replace(tzinfo=FARTHEST_EAST) > deadline
            return Delivery(clock.replace(tzinfo=zone), hint, heap.marked_late or is_late)
        hinted_at = _moment(heap.modified, zone, wall_clock=self._from_zip)
        hint = IN_ZIP if self._from_zip else ON_DISK
        return Delivery(hinted_at, hint if hinted_at else "", heap.marked_late)

    def _reading(self, one: DownloadedItem, asked_id: str, own: Collection[str | None]) -> str:
        """How a name was read that is not quite the one that was asked for; empty when it is.

        Args:
            asked_id: What the name should carry, as the sentence says it.
            own: The ids that it may carry: any of a team's.
        """
        kind = self.assignment.asked_file(one.name)
        if kind is None:
            return ""
        match = name_match(one.name, kind.stem)
        exact = match.closeness is Closeness.EXACT and match.student_id in own
        if exact and one.own == one.name:
            return ""
        asked = kind.name(asked_id, Path(one.name).suffix.lower())
        return f"{one.own or one.path.name} was taken as {asked}: name it so the next time."

    def _named(self, upload: str, one: DownloadedItem) -> Path:
        """The file under the student's own name for it, linked or copied into scratch where it differs."""
        if one.path.name == one.name:
            return one.path
        folder = self._scratch / "named" / upload
        folder.mkdir(parents=True, exist_ok=True)
        target = folder / one.name
        if target.exists():
            return one.path
        try:
            os.link(one.path, target)
        except OSError:
            shutil.copyfile(one.path, target)
        return target


def _upload(heap: StudentFiles) -> str:
    """What the download calls an upload: the LMS's label, or the name of a folder, an archive or a file."""
    if heap.lms:
        return heap.label
    names = list(dict.fromkeys(one.path.name for one in heap.items))
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"


def _unclear(verdict: Verdict, one: _Upload, says: Carried) -> Verdict:
    """The verdict on an upload, held where its names do not tell whose all of it is, and no LMS does."""
    before, origin = verdict.before, verdict.origin
    if verdict.held or origin.known_id:
        return verdict
    if one.heap.rivals and not (before and before.decided and before.digest == one.digest):
        which = " and ".join(map(file_named, sorted(one.heap.rivals)[:3]))
        held = f"{which} may be one student's attempts or several people's: nothing but their names tells."
        return replace(verdict, student_id=origin.listed_as, held=held)
    nobody = verdict.student_id == origin.listed_as and not origin.number
    if not nobody or len(says.several) < 2 or (before and before.decided):
        return verdict
    return replace(verdict, held=f"Its files carry several ids: {', '.join(says.several)}.")


def _whose(heap: StudentFiles, verdict: Verdict, says: Carried) -> list[str]:
    """What a submission's report says of names that are not the student's."""
    origin = verdict.origin
    if not origin.known_id:
        return [f"The files carry several ids: {', '.join(says.several)}."] if len(says.several) > 1 else []
    own = {origin.known_id, verdict.student_id, heap.known_id, *heap.members}
    others = [one for one in says.several if one not in own and are_alike(one, verdict.student_id)]
    if not others:
        return []
    return [
        f"Files are named for {', '.join(others)}, and {origin.lms or 'the LMS'} says that they are "
        f"{verdict.student_id}'s."
    ]


def _notes(found: Iterable[tuple[Verdict, Sequence[str]]]) -> list[str]:
    """What a person should know of whose the uploads are.

    Args:
        found: Each upload's verdict, and what its report says of names.
    """
    notes = []
    unnamed: dict[str, list[str]] = {}
    for verdict, told in found:
        origin, student_id = verdict.origin, verdict.student_id
        if verdict.held:
            continue  # the submission says so itself
        if not verdict.counts:
            notes.append(f"{origin.listed_as}: is {student_id}'s, of whom a person chose another upload.")
        elif origin.known_id and told:
            notes.append(f"{student_id}: {told[0]}")
        elif origin.lms and student_id == origin.listed_as:
            unnamed.setdefault(origin.lms, []).append(student_id)
    for lms, listed in unnamed.items():
        shown = ", ".join(listed[:5]) + (", ..." if len(listed) > 5 else "")
        notes.append(
            f"{len(listed)} submissions carry no student id in their files and are listed by what {lms} "
            f"tells of them: {shown}."
        )
    return notes


def _moved(whose: Iterable[Verdict]) -> tuple[Verdict, ...]:
    """What the gradebook lists otherwise than it turned out, unless a person said so."""
    return tuple(
        one
        for one in whose
        if one.before is not None
        and not one.before.decided
        and (one.student_id.casefold(), bool(one.held)) != (one.before.student_id.casefold(), one.before.held)
    )


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


def _digest(files: tuple[Path, ...], most: int) -> str:
    """SHA-256 over names and contents, hexadecimal, whatever the order of the files.

    Args:
        files: Those of a submission.
        most: Bytes; a larger file is accepted as nothing, so that its size stands for what is beyond them.
    """
    whole = hashlib.sha256()
    parts = []
    for file in files:
        content = hashlib.sha256()
        with file.open("rb") as stream:
            left = most
            while left > 0 and (chunk := stream.read(min(1 << 20, left))):
                content.update(chunk)
                left -= len(chunk)
            if left <= 0 and (size := file.stat().st_size) > most:
                content.update(f"{size} bytes".encode())
        parts.append(f"{file.name}\0{content.hexdigest()}\n")
    for part in sorted(parts):
        whole.update(part.encode("utf-8", "surrogateescape"))
    return whole.hexdigest()
