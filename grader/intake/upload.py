"""What was uploaded, as submissions: one file, a folder of submissions, or a zip of them."""

import hashlib
import os
import shutil
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from grader.domain.assignment import Assignment
from grader.domain.errors import SubmissionError, UsageError
from grader.domain.submission import RefusedFile, Role, Submission
from grader.intake.archive import MEGABYTE, Caps
from grader.intake.naming import Closeness, handed_in, is_clutter, name_match, refused_name, sanitized
from grader.intake.unpacking import HERE, Opener, unpacked

CLASS_SIZE = 40  # a class's archive may hold this many times what one student's may
MOST_FILES = 20_000
DEEPEST = 8


@dataclass(frozen=True)
class Uploads:
    """What was found.

    Attributes:
        submissions: One per student, sorted by id.
        unmatched: Files that belong to no student, with reasons.
        notes: Sentences about the whole, e.g. an id that two students gave.
    """

    submissions: tuple[Submission, ...]
    unmatched: tuple[RefusedFile, ...] = ()
    notes: tuple[str, ...] = ()


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
        return _of_folder(path, _Heaps(assignment, scratch, opener), refused=())
    if path.suffix.lower() == ".zip":
        limit = assignment.limits.archive_mb * MEGABYTE
        caps = Caps(total_bytes=CLASS_SIZE * limit, file_bytes=limit)
        try:
            content = unpacked(path, scratch / "unpacked", caps, opener)
        except SubmissionError as error:
            raise UsageError(str(error)) from error
        heaps = _Heaps(assignment, scratch, opener)
        return _of_folder(scratch / "unpacked", heaps, content.refused, path)
    return _of_file(path, assignment)


def _of_file(path: Path, assignment: Assignment) -> Uploads:
    """The one partial submission that a file is."""
    suffixes = [suffix for file in assignment.files for suffix in file.suffixes]
    if path.suffix.lower() not in suffixes or not path.is_file():
        raise UsageError(
            f"{path.name}: is not a submission's file ({', '.join(suffixes)}), a folder, or a zip. Give one."
        )
    match = name_match(handed_in(path.name)[1], assignment.file_stem)
    student_id = sanitized(match.student_id or path.stem)
    files = (path,)
    return Uploads((Submission(student_id, assignment.id, files, _digest(files), partial=True),))


def _of_folder(
    folder: Path, heaps: "_Heaps", refused: tuple[RefusedFile, ...], source: Path | None = None
) -> Uploads:
    """The submissions in a folder; `source` is the zip that it came from."""
    heaps.add_class(folder, label=(source or folder.resolve()).stem)
    found = heaps.submissions()
    unmatched = (*refused, *heaps.unmatched)
    if not found:
        stem = heaps.assignment.file_stem.replace("{student_id}", "<StudentID>")
        why = f" The first of {len(unmatched)} files set aside: {unmatched[0].reason}" if unmatched else ""
        raise UsageError(
            f"{(source or folder).name}: holds no submission. Files are named like {stem}.py, side by side "
            f"or in one folder per student.{why}"
        )
    return Uploads(found, unmatched, tuple(heaps.notes))


@dataclass
class _Heap:
    """One student's files while they are gathered.

    Attributes:
        label: What the files were found under: a folder's name, an LMS's name of a person, an id.
        from_lms: The label is the LMS's, so that numbers in it are not the student's id.
        files: (the student's name for the file, where it lies).
        set_aside: What could not be taken out of archives.
    """

    label: str
    from_lms: bool
    files: list[tuple[str, Path]] = field(default_factory=list)
    set_aside: list[RefusedFile] = field(default_factory=list)


class _Heaps:
    """The students' heaps of files, gathered from folders and archives."""

    def __init__(self, assignment: Assignment, scratch: Path, opener: Opener) -> None:
        self.assignment = assignment
        self.unmatched: list[RefusedFile] = []
        self.notes: list[str] = []
        self._scratch = scratch
        self._opener = opener
        self._heaps: dict[str, _Heap] = {}
        self._archives = 0
        self._count = 0
        self._suffixes = {suffix for file in assignment.files for suffix in file.suffixes}
        self._code = {s for file in assignment.files if file.role is Role.CODE for s in file.suffixes}

    def add_class(self, folder: Path, label: str, depth: int = 0) -> None:
        """Gathers a folder in which students' files lie side by side, or one folder per student.

        Args:
            folder: The folder.
            label: Its name for a person, which names the student if it is one student's folder after all.
            depth: How many folders above it are classes too.
        """
        entries = self._entries(folder)
        folders = [entry for entry in entries if entry.is_dir()]
        files = [entry for entry in entries if not entry.is_dir()]
        if not files and len(folders) == 1 and depth < DEEPEST and handed_in(folders[0].name)[0] is None:
            self.add_class(folders[0], folders[0].name, depth + 1)
            return
        own = [file for file in files if file.suffix.lower() in self._code]
        if own and not any(map(self._owner, files)) and not any(map(self._holds_code, folders)):
            self._add_folder(folder, label, from_lms=False)
            return
        for file in files:
            self._add_loose(file)
        for child in folders:
            holder, _ = handed_in(child.name)
            if holder is None and depth < DEEPEST and len(self._exact_ids(child)) > 1:
                self.add_class(child, child.name, depth + 1)
            else:
                self._add_folder(child, holder or child.name, from_lms=holder is not None)

    def submissions(self) -> tuple[Submission, ...]:
        """The heaps as submissions with unique ids, sorted by id."""
        found: list[Submission] = []
        taken: set[str] = set()
        for heap in sorted(self._heaps.values(), key=lambda heap: (self._id(heap), heap.label)):
            wanted = student_id = self._id(heap)
            number = 2
            while student_id.lower() in taken:
                student_id = f"{wanted}-{number}"
                number += 1
            if student_id != wanted:
                self.notes.append(
                    f"{heap.label}: its files carry the id {wanted}, which another submission has; it is "
                    f"listed as {student_id}. Find out whose it is."
                )
            taken.add(student_id.lower())
            files = tuple(self._named(student_id, name, path) for name, path in sorted(heap.files))
            set_aside = tuple(heap.set_aside)
            digest = _digest(files)
            found.append(Submission(student_id, self.assignment.id, files, digest, set_aside=set_aside))
        return tuple(found)

    def _entries(self, folder: Path) -> list[Path]:
        """What lies in a folder, without clutter and without links."""
        kept = []
        for entry in sorted(folder.iterdir()):
            if is_clutter(Path(entry.name)):
                continue
            if entry.is_symlink() or not (entry.is_dir() or entry.is_file()):
                self._refuse(entry.name, "is a link or not a file. Hand in the file itself.")
            else:
                kept.append(entry)
        return kept

    def _holds_code(self, folder: Path) -> bool:
        return any(entry.suffix.lower() in self._code for entry in folder.iterdir())

    def _owner(self, file: Path) -> str | None:
        holder, name = handed_in(file.name)
        return holder or name_match(name, self.assignment.file_stem).student_id

    def _add_loose(self, file: Path) -> None:
        """Gathers a file that lies beside those of others."""
        holder, name = handed_in(file.name)
        match = name_match(name, self.assignment.file_stem)
        label = holder or match.student_id
        if file.suffix.lower() == ".zip":
            self._add_archive(file, label or file.stem, from_lms=holder is not None)
        elif (reason := refused_name(name)) is not None:
            self.unmatched.append(RefusedFile(file.name, reason))
        elif label is None:
            stem = self.assignment.file_stem.replace("{student_id}", "<StudentID>")
            asked = stem + file.suffix.lower() if file.suffix.lower() in self._suffixes else f"{stem}.py"
            self._refuse(file.name, f"its name does not say whose it is. Rename it like {asked}.")
        else:
            self._heap(label, from_lms=holder is not None).files.append((name, file))

    def _add_folder(self, folder: Path, label: str, from_lms: bool, depth: int = 0) -> None:
        """Gathers all files under one student's folder."""
        heap = self._heap(label, from_lms)
        for entry in self._entries(folder):
            if entry.is_dir() and depth >= DEEPEST:
                self._refuse(entry.name, "lies too deep within folders. Hand in the files near the top.")
            elif entry.is_dir():
                self._add_folder(entry, label, from_lms, depth + 1)
            elif entry.suffix.lower() == ".zip":
                self._add_archive(entry, label, from_lms)
            elif self._count >= MOST_FILES:
                self._refuse(entry.name, f"is beyond the first {MOST_FILES} files. Hand in less.")
            else:
                self._count += 1
                heap.files.append((handed_in(entry.name)[1] or entry.name, entry))

    def _add_archive(self, archive: Path, label: str, from_lms: bool) -> None:
        """Gathers a student's own archive; one that cannot be unpacked stays a file, to be refused."""
        heap = self._heap(label, from_lms)
        limits = self.assignment.limits
        size = limits.archive_mb * MEGABYTE
        self._archives += 1
        into = self._scratch / "nested" / str(self._archives)
        try:
            content = unpacked(archive, into, Caps(total_bytes=size, file_bytes=size), self._opener)
        except SubmissionError as error:
            name = handed_in(archive.name)[1] or archive.name
            heap.files.append((name, archive))
            heap.set_aside.append(RefusedFile(name, str(error)))
            return
        heap.set_aside += content.refused
        heap.files += [(file.name, file) for file in content.files if not is_clutter(file.relative_to(into))]
        if not content.files:
            self._refuse(archive.name, "holds no file. Pack the files again and upload that.")

    def _heap(self, label: str, from_lms: bool) -> _Heap:
        return self._heaps.setdefault(label, _Heap(label, from_lms))

    def _exact_ids(self, folder: Path) -> set[str]:
        """The ids in the names, exactly as asked for, of the files right in a folder."""
        matches = (
            name_match(entry.name, self.assignment.file_stem)
            for entry in folder.iterdir()
            if not entry.is_dir()
        )
        return {m.student_id for m in matches if m.student_id and m.closeness <= Closeness.NEARLY}

    def _id(self, heap: _Heap) -> str:
        """The student's id: from the files' names, best match first, else from the label."""
        matches = [name_match(name, self.assignment.file_stem) for name, _ in heap.files]
        for closeness in (Closeness.EXACT, Closeness.NEARLY, Closeness.ID_ONLY):
            ids = Counter(m.student_id for m in matches if m.student_id and m.closeness is closeness)
            if heap.label in ids:
                return sanitized(heap.label)
            if ids:
                most = max(ids.values())
                return sanitized(min(name for name in ids if name and ids[name] == most) or heap.label)
        if not heap.from_lms:
            match = name_match(heap.label, self.assignment.file_stem)
            return sanitized(match.student_id or heap.label)
        return sanitized(heap.label)

    def _named(self, student_id: str, name: str, path: Path) -> Path:
        """The file under the student's own name for it, linked or copied into scratch where it differs."""
        if path.name == name:
            return path
        folder = self._scratch / "named" / student_id
        folder.mkdir(parents=True, exist_ok=True)
        target = folder / name
        if target.exists():
            return path
        try:
            os.link(path, target)
        except OSError:
            shutil.copyfile(path, target)
        return target

    def _refuse(self, name: str, why: str) -> None:
        self.unmatched.append(RefusedFile(name, f"{name}: {why}"))


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
