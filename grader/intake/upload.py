"""Reads an upload as submissions: one file, a folder of submissions, or a zip of them."""

import hashlib
import os
import shutil
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from pathlib import Path, PurePosixPath

from grader.course.extensions import by_known_id
from grader.domain.assignment import Assignment
from grader.domain.errors import SubmissionError, UsageError
from grader.domain.formatting import about_file, file_named
from grader.domain.limits import MEGABYTE
from grader.domain.submission import (
    AccountedFile,
    Delivery,
    Fate,
    Lacking,
    Origin,
    RecordedUpload,
    RefusedFile,
    Submission,
)
from grader.domain.term_total import GroupMember
from grader.files.file_names import plain
from grader.intake.archive_pieces import Caps
from grader.intake.downloaded_files import DownloadedItem, Ledger
from grader.intake.handing_on import handed_on_by_groups
from grader.intake.naming import ANY_ID, Closeness, name_match
from grader.intake.ownership import (
    IdInNames,
    Verdict,
    are_of_one_kind,
    ids_in_names,
    is_provisional,
    provisional_id,
    verdicts,
)
from grader.intake.student_files import StudentFiles
from grader.intake.unpacking import HERE, Opener, unpacked
from grader.intake.upload_grouping import Gathering
from grader.lms.downloads import read_name
from grader.lms.roster import Directory

CLASS_SIZE = 40  # a class's archive may be this many times as large as one student's
UNPACKED = "unpacked"  # the folder in scratch where a class's archive is unpacked
Lists = Callable[[Path], Directory | None]  # reads a table; None if it is not a class list
IN_ZIP = "the modification time in the zip"
ON_DISK = "the modification time on the disk"
FARTHEST_EAST = timezone(timedelta(hours=14))  # the zone that reaches a clock's time first


@dataclass(frozen=True)
class Uploads:
    """The submissions of an upload, and the account of all its files.

    Attributes:
        submissions: One per student, sorted by id.
        unmatched: Files that belong to no student, with reasons.
        notes: Sentences about the whole upload, without names of people.
        account: Every file of the download, and what became of it.
        moved: The verdicts on uploads that the gradebook lists under another id.
        lacking: Submissions that an LMS lists and its download lacks.
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
class KnownOwners:
    """What is known, before an upload is read, about whose submissions are.

    Attributes:
        directory: What the LMS's class list says.
        lists: Reads such a list if it lies in the download, beside what the LMS put there.
        uploads: Those that the gradebook has results of.
        groups: Student -> the members of the student's group, by a file: what one hands in counts for all.
    """

    directory: Directory = field(default_factory=Directory)
    lists: Lists = lambda _: None
    uploads: Sequence[RecordedUpload] = ()
    groups: Mapping[str, Sequence[GroupMember]] = field(default_factory=dict)


NO_KNOWN_OWNERS = KnownOwners()


def require_path(path: Path) -> None:
    """Refuse a path at which there is nothing, or that nobody could write down.

    Raises:
        UsageError: It is one of those.
    """
    if not path.exists():
        raise UsageError(f"{path}: does not exist. Give a submission's file, a folder of them, or a zip.")
    try:
        str(path.resolve()).encode("utf-8")
    except UnicodeEncodeError:
        raise UsageError(
            f"{str(path)!a}: this path is not UTF-8, so that it cannot be recorded. Rename what it names."
        ) from None


def require_apart(path: Path, out: Path) -> None:
    """Refuse a folder of results among the submissions: the next run would read it as one of them.

    Raises:
        UsageError: It lies there.
    """
    if path.is_dir() and out.resolve().is_relative_to(path.resolve()):
        raise UsageError(
            f"--out {out}: lies among the submissions, so the next run would take the results for one of "
            f"them. Give a folder outside of {path.resolve()}."
        )


def submissions(
    path: Path,
    assignment: Assignment,
    scratch: Path,
    opener: Opener = HERE,
    known: KnownOwners = NO_KNOWN_OWNERS,
    *,
    until: datetime | None = None,
) -> Uploads:
    """The submissions at `path`.

    Args:
        path: A submission's file, a folder of submissions (files side by side, or a folder per student), or
            a zip of either, as an LMS gives it.
        assignment: Says how files are named.
        scratch: Our own folder for unpacked files; the submissions' files may lie there.
        opener: Opens archives.
        known: What is known about the class.
        until: What an LMS received later is left alone, so that earlier attempts count; None: the last do.

    Raises:
        UsageError: There is nothing at `path`, or nothing there that could be a submission.
    """
    require_path(path)
    if path.is_dir():
        whole = _Class(assignment, scratch, opener, known, from_zip=False, until=until)
        return _of_class(path, path.resolve(), whole)
    if path.suffix.lower() != ".zip":
        alone = replace(known, groups={})
        return _of_file(path, _Class(assignment, scratch, opener, alone, from_zip=False))
    limit = assignment.limits.archive_mb * MEGABYTE
    caps = Caps(total_bytes=CLASS_SIZE * limit, file_bytes=limit)
    try:
        content = unpacked(path, scratch / UNPACKED, caps, opener)
    except SubmissionError as error:
        raise UsageError(str(error)) from error
    class_uploads = _Class(assignment, scratch, opener, known, from_zip=True, until=until)
    for refused in content.refused:
        class_uploads.ledger.note(refused.name, Fate.REFUSED, reason=refused.reason, clutter=refused.clutter)
    return _of_class(scratch / UNPACKED, path, class_uploads)


def with_extensions(uploads: Uploads, extensions: Mapping[str, datetime]) -> Uploads:
    """The uploads with some students' own deadlines; a student who handed nothing in is noted."""
    own = by_known_id(extensions, (one.student_id for one in uploads.submissions))
    extended = tuple(
        replace(one, delivery=replace(one.delivery, extension=own.get(one.student_id)))
        for one in uploads.submissions
    )
    absent = sorted(own.keys() - {one.student_id for one in uploads.submissions})
    notes = [f"{one}: has an extension, but nothing in the download has this id." for one in absent]
    return replace(uploads, submissions=extended, notes=(*uploads.notes, *notes))


def _of_file(path: Path, class_uploads: "_Class") -> Uploads:
    """A file as one partial submission."""
    name = plain(read_name(path.name).name)
    suffixes = [suffix for file in class_uploads.assignment.files for suffix in file.suffixes]
    if Path(name).suffix.lower() not in suffixes or not path.is_file():
        raise UsageError(
            f"{path.name}: is not a submission's file ({', '.join(suffixes)}), a folder, or a zip. Give one."
        )
    class_uploads.gathering.gather_file(path)
    uploads = class_uploads.uploads()
    partial = tuple(
        replace(submission, partial=True, notes=(), delivery=Delivery()) for submission in uploads.submissions
    )
    account = tuple(replace(file, reason="") for file in uploads.account)
    return replace(uploads, submissions=partial, account=account)


def _of_class(folder: Path, source: Path, class_uploads: "_Class") -> Uploads:
    """The submissions in a folder; `source` is the given folder, or the zip that it came from."""
    class_uploads.gathering.gather(folder, source.stem)
    uploads = class_uploads.uploads()
    if not uploads.submissions and not class_uploads.gathering.files_of_students:
        stem = class_uploads.assignment.file_stem.replace("{student_id}", "<StudentID>")
        unmatched = uploads.unmatched
        why = f" The first of {len(unmatched)} files set aside: {unmatched[0].reason}" if unmatched else ""
        raise UsageError(
            f"{source.name}: holds no submission. Files are named like {stem}.py, side by side "
            f"or in one folder per student.{why}"
        )
    return uploads


@dataclass(frozen=True)
class _Upload:
    """Files as the upload of one student.

    Attributes:
        owner: The key of its files in the account.
        files: The files that count, under the student's own names for them.
        digest: Of these files.
        contents: Digest of what is in them, under whatever names.
    """

    student_files: StudentFiles
    owner: str
    origin: Origin
    files: tuple[Path, ...]
    digest: str
    contents: str


class _Class:
    """The files of a class's students, made into submissions."""

    def __init__(
        self,
        assignment: Assignment,
        scratch: Path,
        opener: Opener,
        known: KnownOwners,
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
        files_of_students = list(self.gathering.files_of_students.values())
        names = ids_in_names(files_of_students, self.assignment)
        uploads_of_students = [
            self._owned(student_files, carried_ids)
            for student_files, carried_ids in zip(files_of_students, names, strict=True)
        ]
        directory = self._directory()
        verdict_by_key = self._verdicts(uploads_of_students, directory)
        for uploads_of_student, carried_ids in zip(uploads_of_students, names, strict=True):
            for upload in uploads_of_student:
                key = upload.origin.key
                verdict_by_key[key] = _held_if_unclear(verdict_by_key[key], upload, carried_ids)
        handing_on = handed_on_by_groups(
            self._known.groups,
            {
                verdict.student_id: (student_files, upload.contents)
                for student_files, [upload, *team] in zip(files_of_students, uploads_of_students, strict=True)
                for verdict in [verdict_by_key[upload.origin.key]]
                if _is_a_students_own(verdict) and not team
            },
            _with_own(verdict_by_key, {upload.origin.key for one in uploads_of_students for upload in one}),
            {
                student_id
                for verdict in verdict_by_key.values()
                if verdict.held_because
                for student_id in (verdict.origin.carries, verdict.origin.known_id)
            },
        )
        if handing_on.any:
            uploads_of_students = [
                self._owned(student_files, carried_ids)
                for student_files, carried_ids in zip(files_of_students, names, strict=True)
            ]
            verdict_by_key = self._verdicts(uploads_of_students, directory)
        ids: dict[str, str] = {}
        all_submissions: list[Submission] = []
        for uploads_of_student, carried_ids in zip(uploads_of_students, names, strict=True):
            for upload in uploads_of_student:
                verdict = verdict_by_key[upload.origin.key] = _held_if_unclear(
                    verdict_by_key[upload.origin.key], upload, carried_ids
                )
                is_senders = upload.owner == upload.student_files.key
                parts = upload.student_files.parts if is_senders else ()
                ids |= dict.fromkeys((upload.owner, *parts), verdict.student_id)
            counting = [upload for upload in uploads_of_student if verdict_by_key[upload.origin.key].counts]
            team = tuple(sorted(verdict_by_key[upload.origin.key].student_id for upload in counting))
            for upload in counting:
                submission = self._submission(upload, verdict_by_key[upload.origin.key], carried_ids)
                all_submissions.append(replace(submission, team=team if len(uploads_of_student) > 1 else ()))
        verdicts_with_notes = [
            (
                verdict_by_key[upload.origin.key],
                _foreign_name_notes(upload.student_files, verdict_by_key[upload.origin.key], carried_ids),
            )
            for uploads_of_student, carried_ids in zip(uploads_of_students, names, strict=True)
            for upload in uploads_of_student
        ]
        notes = (*self.gathering.notes, *handing_on.notes, *_notes(verdicts_with_notes))
        account = self.ledger.accounted(ids)
        all_submissions.sort(key=lambda submission: submission.student_id)
        lacking = tuple(self.gathering.lacking)
        # not the keys of all verdicts, which include uploads of earlier downloads
        keys = {
            upload.origin.key for uploads_of_student in uploads_of_students for upload in uploads_of_student
        } | {submission.key for submission in lacking}
        return Uploads(
            submissions=tuple(all_submissions),
            unmatched=self.ledger.unmatched(),
            notes=notes,
            account=account,
            moved=_moved(verdict_by_key.values()),
            lacking=lacking,
            keys=frozenset(keys),
        )

    def _verdicts(
        self, uploads_of_students: Sequence[Sequence[_Upload]], directory: Directory
    ) -> dict[str, Verdict]:
        """Whose each upload is, by its key."""
        uploads = {
            upload.origin.key: (upload.origin, upload.digest)
            for uploads_of_student in uploads_of_students
            for upload in uploads_of_student
        }
        return verdicts(uploads, directory, self._known.uploads)

    def _directory(self) -> Directory:
        """The LMS's class list: one that was given, or one that lies beside the LMS's files."""
        files_of_students = self.gathering.files_of_students.values()
        places = {
            PurePosixPath(item.shown).parent
            for student_files in files_of_students
            if student_files.lms
            for item in student_files.items
        }
        for table in self.gathering.tables:
            directory = self._known.lists(table.path)
            if directory is None:
                continue
            self.ledger.accept(table.shown, f"{table.path.name}: was read: it is the class list.")
            if not self._known.directory.students and PurePosixPath(table.shown).parent in places:
                return directory
            break
        return self._known.directory

    def _owned(self, student_files: StudentFiles, carried_id: IdInNames) -> list[_Upload]:
        """The files as one upload for each student who handed them in."""
        # the same place in another download may be another student's, so the id is part of the key
        key = (
            student_files.key
            if student_files.lms
            else f"{student_files.key}:{carried_id.student_id.casefold()}"
        )
        upload = (
            student_files.items[0].path.name
            if student_files.known_id and student_files.items
            else _upload(student_files)
        )
        without_person_names = (
            student_files.label.rpartition("_")[2] if student_files.names_by_id.get("") else upload
        )
        listed_as = provisional_id(key, student_files.lms, student_files.number, without_person_names)
        origin = Origin(
            key, upload, listed_as, student_files.lms, student_files.number, carries=carried_id.student_id
        )
        files = tuple(
            self._named(listed_as, file)
            for file in sorted(student_files.files, key=lambda file: (file.name, file.shown))
        )
        limits = self.assignment.limits
        most = max(limits.archive_mb, limits.checkpoint_mb, limits.file_mb, limits.notebook_mb)
        digest, contents = _digests(files, most * MEGABYTE)
        uploads_of_student = []
        for owner, student_id in (
            (student_files.key, student_files.known_id or ""),
            *((f"{student_files.key}:{m}", m) for m in student_files.members),
        ):
            member_origin = replace(
                origin, person=student_files.names_by_id.get(student_id, ""), known_id=student_id
            )
            if owner != student_files.key:
                key = f"{origin.key}:{student_id}"
                listed_as = provisional_id(key, "", "", upload)
                # the LMS's number is that of the one who sent it
                member_origin = replace(member_origin, key=key, number="", listed_as=listed_as)
            uploads_of_student.append(_Upload(student_files, owner, member_origin, files, digest, contents))
        return uploads_of_student

    def _submission(self, upload: _Upload, verdict: Verdict, carried_id: IdInNames) -> Submission:
        student_files, student_id = upload.student_files, verdict.student_id
        asked = ANY_ID if student_files.members else verdict.origin.asked_id(student_id)
        team = (student_files.known_id, student_files.sender, *student_files.members)
        expected_ids = team if student_files.members else (asked,)
        notes = [*student_files.notes, *_foreign_name_notes(student_files, verdict, carried_id)]
        for file in student_files.files:
            note = self._reading(file, asked, expected_ids)
            if file.written_name != file.handed.name and file.handed.name:
                notes.append(about_file(file.written_name or file.path.name, note))
            if file.path not in student_files.unusable and upload.owner == student_files.key:
                self.ledger.note(file.shown, Fate.MATCHED, owner=student_files.key, reason=note)
        return Submission(
            student_id,
            self.assignment.id,
            upload.files,
            upload.digest,
            received_at=student_files.received_at,
            delivery=self._delivery(student_files),
            set_aside=tuple(student_files.set_aside),
            notes=tuple(notes),
            origin=verdict.origin,
            held=verdict.held_because,
        )

    def _delivery(self, student_files: StudentFiles) -> Delivery:
        """What is known about the time of delivery, besides the moment that the LMS records."""
        deadline = self.assignment.deadline
        zone = (deadline.tzinfo if deadline else None) or UTC
        if student_files.received_clock is not None and student_files.received_at is None:
            clock = student_files.received_clock
            hint = f"the time that {student_files.lms} tells without its zone"
            is_late = deadline is not None and clock.replace(tzinfo=FARTHEST_EAST) > deadline
            return Delivery(clock.replace(tzinfo=zone), hint, student_files.marked_late or is_late)
        hinted_at = _moment(student_files.modified, zone, wall_clock=self._from_zip)
        hint = IN_ZIP if self._from_zip else ON_DISK
        return Delivery(hinted_at, hint if hinted_at else "", student_files.marked_late)

    def _reading(self, item: DownloadedItem, asked_id: str, expected_ids: Collection[str | None]) -> str:
        """How a name was read that does not quite fit; empty if it does.

        Args:
            asked_id: The id that the name should carry, as the sentence shows it.
            expected_ids: The ids that it may carry: those of all members of a team.
        """
        kind = self.assignment.asked_file(item.name)
        if kind is None:
            return ""
        match = name_match(item.name, kind.stem)
        exact = match.closeness is Closeness.EXACT and match.student_id in expected_ids
        if exact and item.written_name == item.name:
            return ""
        asked = kind.name(asked_id, Path(item.name).suffix.lower())
        return f"{item.written_name or item.path.name} was taken as {asked}: use that name next time."

    def _named(self, upload: str, item: DownloadedItem) -> Path:
        """The file under the student's own name for it, linked or copied into scratch if that differs."""
        if item.path.name == item.name:
            return item.path
        folder = self._scratch / "named" / upload
        folder.mkdir(parents=True, exist_ok=True)
        target = folder / item.name
        if target.exists():
            return item.path
        try:
            os.link(item.path, target)
        except OSError:
            shutil.copyfile(item.path, target)
        return target


def _upload(student_files: StudentFiles) -> str:
    """The name of an upload in the download: the LMS's label, or that of a folder, archive or file."""
    if student_files.lms:
        return student_files.label
    names = list(dict.fromkeys(item.path.name for item in student_files.items))
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"


def _is_a_students_own(verdict: Verdict) -> bool:
    """Whether it is known whose an upload is, and it counts for that student."""
    return verdict.counts and not verdict.held_because and not is_provisional(verdict.student_id)


def _with_own(verdict_by_key: Mapping[str, Verdict], here: Collection[str]) -> set[str]:
    """The students with a submission of their own, in this download or in the gradebook.

    Args:
        here: The keys of the uploads of this download.
    """
    keys = verdict_by_key.keys() | {
        verdict.before.origin.key for verdict in verdict_by_key.values() if verdict.before is not None
    }
    return {
        verdict.student_id
        for key, verdict in verdict_by_key.items()
        # that of a submission which was handed on is the sender's, and the member's id
        if _is_a_students_own(verdict) and (key in here or key.rpartition(":")[0] not in keys)
    }


def _held_if_unclear(verdict: Verdict, upload: _Upload, carried_id: IdInNames) -> Verdict:
    """The verdict on an upload, held if neither its names nor an LMS say whose all of it is."""
    before, origin = verdict.before, verdict.origin
    if verdict.held_because or origin.known_id:
        return verdict
    if upload.student_files.rivals and not (before and before.decided and before.digest == upload.digest):
        which = " and ".join(map(file_named, sorted(upload.student_files.rivals)[:3]))
        held = f"{which} may be one student's attempts or several people's: only their names give a clue."
        return replace(verdict, student_id=origin.listed_as, held_because=held)
    nobody = verdict.student_id == origin.listed_as and not origin.number
    if not nobody or len(carried_id.several) < 2 or (before and before.decided):
        return verdict
    return replace(verdict, held_because=f"Its files carry several ids: {', '.join(carried_id.several)}.")


def _foreign_name_notes(student_files: StudentFiles, verdict: Verdict, carried_id: IdInNames) -> list[str]:
    """Sentences for a submission's report about names that are not the student's."""
    origin = verdict.origin
    if not origin.known_id:
        return (
            [f"The files carry several ids: {', '.join(carried_id.several)}."]
            if len(carried_id.several) > 1
            else []
        )
    own_ids = {origin.known_id, verdict.student_id, student_files.known_id, student_files.sender}
    own_ids |= set(student_files.members)
    others = [
        other_id
        for other_id in carried_id.several
        if other_id not in own_ids and are_of_one_kind(other_id, verdict.student_id)
    ]
    if not others:
        return []
    return [
        f"Files are named for {', '.join(others)}, and {origin.lms or 'the LMS'} says that they are "
        f"{verdict.student_id}'s."
    ]


def _notes(named_verdicts: Iterable[tuple[Verdict, Sequence[str]]]) -> list[str]:
    """What a person should know about whose the uploads are.

    Args:
        named_verdicts: Each upload's verdict, and what its report says about names.
    """
    notes = []
    unnamed: dict[str, list[str]] = {}
    for verdict, sentences in named_verdicts:
        origin, student_id = verdict.origin, verdict.student_id
        if verdict.held_because:
            continue  # the submission says so itself
        if not verdict.counts:
            notes.append(f"{origin.listed_as}: is {student_id}'s, for whom a person chose another upload.")
        elif origin.known_id and sentences:
            notes.append(f"{student_id}: {sentences[0]}")
        elif origin.lms and student_id == origin.listed_as:
            unnamed.setdefault(origin.lms, []).append(student_id)
    for lms, listed in unnamed.items():
        shown = ", ".join(listed[:5]) + (", ..." if len(listed) > 5 else "")
        notes.append(
            f"{len(listed)} submissions carry no student id in their files and are listed by what {lms} "
            f"says about them: {shown}."
        )
    return notes


def _moved(all_verdicts: Iterable[Verdict]) -> tuple[Verdict, ...]:
    """The verdicts on uploads that the gradebook lists otherwise, unless a person decided that."""
    return tuple(
        verdict
        for verdict in all_verdicts
        if verdict.before is not None
        and not verdict.before.decided
        and (verdict.student_id.casefold(), bool(verdict.held_because))
        != (verdict.before.student_id.casefold(), verdict.before.held)
    )


def _moment(seconds: float, zone: tzinfo, *, wall_clock: bool) -> datetime | None:
    """A time of modification as a moment, or None if there is none.

    Args:
        seconds: Since 1970.
        zone: The zone of the moment.
        wall_clock: The seconds come from a clock in an unknown zone, as in a zip: it is taken to be `zone`.
    """
    if seconds <= 0:
        return None
    if wall_clock:
        return datetime.fromtimestamp(int(seconds), UTC).replace(tzinfo=zone)
    return datetime.fromtimestamp(int(seconds), zone)


def _digests(files: tuple[Path, ...], most: int) -> tuple[str, str]:
    """SHA-256 over names and contents, and over contents alone, whatever the order of the files; hexadecimal.

    Args:
        files: The files of a submission.
        most: Bytes to read of each file; a larger file is never accepted, so its size stands for the rest.
    """
    parts, contents = [], []
    for file in files:
        content = hashlib.sha256()
        with file.open("rb") as stream:
            bytes_left = most
            while bytes_left > 0 and (chunk := stream.read(min(1 << 20, bytes_left))):
                content.update(chunk)
                bytes_left -= len(chunk)
            if bytes_left <= 0 and (size := file.stat().st_size) > most:
                content.update(f"{size} bytes".encode())
        parts.append(f"{file.name}\0{content.hexdigest()}\n")
        contents.append(f"{content.hexdigest()}\n")
    named, unnamed = (
        hashlib.sha256("".join(sorted(lines)).encode("utf-8", "surrogateescape"))
        for lines in (parts, contents)
    )
    return named.hexdigest(), unnamed.hexdigest()
