"""Groups files into uploads: gathers the files of each student from a class's folders and files."""

from collections.abc import Iterator
from datetime import datetime
from itertools import combinations
from pathlib import Path, PurePosixPath

from grader.domain.assignment import Assignment
from grader.domain.errors import SubmissionError
from grader.domain.submission import Fate, Lacking, Role
from grader.files.file_names import plain
from grader.intake.downloaded_files import (
    DownloadedItem,
    Ledger,
    downloaded_item,
    entries,
    superseded_reason,
    unclear,
)
from grader.intake.naming import LONG_NUMBER, Closeness, is_alike, is_clutter, own_match, refused_name
from grader.intake.student_files import DEEPEST, Sorting, StudentFiles
from grader.intake.unpacking import Opener
from grader.lms.downloads import is_metadata, read_together, submission_list
from grader.lms.system import DownloadName, SubmissionList, submissions_sorted_by_time

TABLE = ".csv"
ANY = "any"  # the kind of folders and archives, which may hold files of every kind


class Gathering:
    """The files of a class by student.

    Attributes:
        files_of_students: By their keys.
        notes: Sentences about the whole upload.
        lacking: Submissions that an LMS lists and its export lacks.
        tables: Files that belong to nobody and may be class lists.

    Args:
        assignment: Says how files are named.
        scratch: Our own folder for unpacked files.
        opener: Opens archives.
        ledger: Where every file is accounted for.
        until: What an LMS received later is left alone; None: everything counts.
    """

    def __init__(
        self,
        assignment: Assignment,
        scratch: Path,
        opener: Opener,
        ledger: Ledger,
        until: datetime | None = None,
    ) -> None:
        self.files_of_students: dict[str, StudentFiles] = {}
        self.notes: list[str] = []
        self.lacking: list[Lacking] = []
        self.tables: list[DownloadedItem] = []
        self._root = ""  # where the class's folder lies in the download
        self._kinds: dict[str, set[str]] = {}  # place -> the kinds of the students' files in it
        self._assignment = assignment
        self._until = until
        self._ledger = ledger
        self._opener = opener
        self._sorting = Sorting(assignment, scratch, opener, ledger)
        self._code = {s for file in assignment.files if file.role == Role.CODE for s in file.suffixes}

    def gather(self, folder: Path, label: str) -> None:
        """Gather all students' files below a folder, and sort them.

        Args:
            folder: Students' files side by side, a folder for each student, sections, or an export.
            label: Its readable name, which names the student if it turns out to be one student's folder.
        """
        self._add_class(folder, "", label, depth=0)
        self._join_kinds()
        self._separate_unclear()
        self.files_of_students = {
            sorted_files.key: sorted_files
            for student_files in self.files_of_students.values()
            for sorted_files in self._sorting.sort(student_files)
        }

    def gather_file(self, path: Path) -> None:
        """Gather a single file, the only one of its upload."""
        item = downloaded_item(path, path.name)
        stem = Path(item.name).stem
        self._add(item, self._owner(item) or (f"file:{stem}", stem))
        (student_files,) = self.files_of_students.values()
        student_files.files = list(student_files.items)

    def _add_class(self, folder: Path, shown: str, label: str, depth: int) -> None:
        items = self._read_together(entries(folder, shown, self._ledger))
        folders = [item for item in items if item.is_folder]
        files = [item for item in items if not item.is_folder]
        only_folder = folders[0] if not files and len(folders) == 1 else None
        if (
            only_folder
            and depth < DEEPEST
            and only_folder.handed.sender_label is None
            and not self._is_students(only_folder.path)
        ):
            self._root = only_folder.shown if self._root == shown else self._root
            self._add_class(only_folder.path, only_folder.shown, only_folder.path.name, depth + 1)
            return
        metadata = [item for item in files if is_metadata(item.path.name)]
        if metadata and (listed := self._listed(metadata[0])) is not None:
            self._add_listed(listed, [item for item in items if item is not metadata[0]])
            return
        files = [item for item in files if item not in metadata]
        code_files = [item for item in files if Path(item.name).suffix.lower() in self._code]
        if (
            code_files
            and not any(map(self._owner, files))
            and not any(self._holds_code(item.path) for item in folders)
        ):
            name = label if shown == self._root else self._place(shown)
            student_files = self._files_with_key(
                *(self._owner_by_id(label, name) or (f"folder:{name}", label))
            )
            student_files.items, student_files.whole = [*student_files.items, *items], True
            return
        for item in files:
            self._add_loose(item)
        for item in folders:
            if item.handed.sender_label is None and depth < DEEPEST and self._is_class(item.path):
                self._add_class(item.path, item.shown, item.path.name, depth + 1)
            else:
                self._add_folder(item)

    def _add_loose(self, item: DownloadedItem) -> None:
        """Gather a file that lies beside other students' files."""
        owner = self._owner(item)
        if owner is None and item.is_archive:
            owner = (f"archive:{self._place(item.shown)}", Path(item.name).stem)
        if (reason := refused_name(item.name)) is not None and item.handed.sender_label is None:
            self._ledger.note(item.shown, Fate.REFUSED, reason=reason)
        elif owner is None:
            suffix = Path(item.name).suffix.lower()
            kind = self._assignment.asked_file(item.name)
            stem = self._assignment.file_stem.replace("{student_id}", "<StudentID>")
            asked = kind.name("<StudentID>", suffix) if kind is not None else f"{stem}.py"
            reason = f"{item.name}: its name does not say whose it is. Rename it like {asked}."
            self._ledger.note(item.shown, Fate.REFUSED, reason=reason)
            if suffix == TABLE:
                self.tables.append(item)
        else:
            self._add(item, owner)

    def _add_folder(self, item: DownloadedItem) -> None:
        """Gather a student's folder."""
        # a folder with an id in its name joins the other folders and files of that student beside it
        default_owner = (f"folder:{self._place(item.shown)}", item.path.name)
        self._add(item, self._owner(item) or default_owner)

    def _add(self, item: DownloadedItem, owner: tuple[str, str]) -> None:
        student_files = (
            self._files_with_key(*owner) if item.handed.sender_label is None else self._files_of(item.handed)
        )
        student_files.items.append(item)
        if not item.handed.lms:
            kind = ANY if item.is_folder or item.is_archive else self._kind(item)
            self._kinds.setdefault(_parent(self._place(item.shown)), set()).add(kind)

    def _read_together(self, items: list[DownloadedItem]) -> list[DownloadedItem]:
        """The items as names say it only in combination, without the files that the LMS itself made."""
        by_name = {item.path.name: item for item in items}
        readings = read_together({name: item.path for name, item in by_name.items()})
        for name, reason in readings.lms_files.items():
            self._ledger.note(by_name.pop(name).shown, Fate.MATCHED, reason=reason)
        for attempt in readings.attempts:
            if not self._is_later(attempt.received_at):
                self._files_of(attempt).attempts.append(attempt)
        names = readings.names
        items = [item.with_reading(names[name]) if name in names else item for name, item in by_name.items()]
        return [item for item in items if not self._is_later(item.handed.received_at)]

    def _is_later(self, received_at: datetime | None) -> bool:
        """Whether something came after the moment that counts; what nobody knows the time of did not."""
        return self._until is not None and received_at is not None and received_at > self._until

    def _listed(self, metadata: DownloadedItem) -> SubmissionList | None:
        """The submissions that an export's metadata lists; a file that cannot be read is accounted for."""
        name = metadata.path.name
        try:
            submissions = submission_list(name, self._opener.metadata_rows(metadata.path))
        except SubmissionError as error:
            self._ledger.note(metadata.shown, Fate.REFUSED, reason=str(error))
            return None
        reason = f"{name.casefold()}: was read: it says who handed in what, and when."
        self._ledger.note(metadata.shown, Fate.MATCHED, reason=reason)
        return submissions

    def _add_listed(self, listed: SubmissionList, items: list[DownloadedItem]) -> None:
        """Gather the folders of an export by the students that the LMS knows."""
        later = {
            folder for folder, submission in listed.by_folder.items() if self._is_later(submission.created_at)
        }
        if later:
            earlier = [submission for folder, submission in listed.by_folder.items() if folder not in later]
            listed = submissions_sorted_by_time(listed.lms, earlier)
        by_name = {item.path.name: item for item in items if item.path.name not in later}
        items = list(by_name.values())
        self.notes += listed.notes(by_name)
        self.lacking += listed.lacking(by_name)
        for item in items:
            row = listed.by_folder.get(item.path.name)
            if row is None:
                self._add_folder(item) if item.is_folder else self._add_loose(item)
                continue
            student = listed.owner(row.folder)
            key = f"{listed.lms}:{student or row.folder}"
            student_files = self._files_with_key(key, student or row.folder, listed.lms)
            student_files.known_id = student
            counts = listed.counting(row.folder)
            if counts == row.folder or counts not in by_name:
                student_files.items.append(item)
                student_files.received_at = row.created_at
                student_files.names_by_id = dict(zip(row.students, row.names, strict=False))
                student_files.notes += listed.shared(row.folder)
                student_files.members = listed.members(row.folder) if counts == row.folder else ()
                continue
            why = superseded_reason(item, by_name[counts], f"which {listed.lms} received later")
            self._sorting.supersede(student_files, item, why)

    def _owner(self, item: DownloadedItem) -> tuple[str, str] | None:
        """(Key, label) of the student's files that a file or folder belongs to by its name, or None."""
        if item.handed.sender_label is not None:
            return _sender(item.handed)
        return self._owner_by_id(item.name, self._place(item.shown))

    def _owner_by_id(self, name: str, place: str) -> tuple[str, str] | None:
        """(Key, label) of the files of a student whose id is in a name, or None.

        Args:
            place: Its path within the class's folder: one id in several places may be several people's.
        """
        student_id = own_match(plain(name), self._assignment).student_id
        place_suffix = f"@{_parent(place)}" if _parent(place) else ""
        return (f"id:{student_id.casefold()}{place_suffix}", student_id) if student_id else None

    def _files_with_key(self, key: str, label: str, lms: str = "") -> StudentFiles:
        return self.files_of_students.setdefault(key, StudentFiles(key, label, lms))

    def _files_of(self, handed: DownloadName) -> StudentFiles:
        """The files of whoever the LMS says handed something in."""
        student_files = self._files_with_key(*_sender(handed), handed.lms)
        student_files.number, student_files.names_by_id = handed.number, {"": handed.sender_name}
        return student_files

    def _place(self, shown: str) -> str:
        """The path of something within the class's folder."""
        return shown.removeprefix(f"{self._root}/") if self._root else shown

    def _kind(self, item: DownloadedItem) -> str:
        """What a file is for, by its suffix."""
        asked = self._assignment.asked_file(item.name)
        return asked.role if asked is not None else Path(item.name).suffix.lower()

    def _join_kinds(self) -> None:
        """Join a student's files from folders for each kind of file: `code`, `weights`, `reports`."""
        by_id: dict[str, list[StudentFiles]] = {}
        for key, student_files in self.files_of_students.items():
            if key.startswith("id:"):
                by_id.setdefault(key.partition("@")[0], []).append(student_files)
        for files_of_students in by_id.values():
            kinds = [
                self._kinds.get(student_files.key.partition("@")[2], {ANY})
                for student_files in files_of_students
            ]
            if any(
                ANY in kind_set or ANY in other_kinds or kind_set & other_kinds
                for kind_set, other_kinds in combinations(kinds, 2)
            ):
                continue
            for student_files in files_of_students[1:]:
                files_of_students[0].items += student_files.items
                del self.files_of_students[student_files.key]

    def _separate_unclear(self) -> None:
        """Separate what may be one student's attempts or several people's, if nothing shows which counts.

        For files side by side without an LMS, only the name says whose a file is.
        """
        for key, student_files in list(self.files_of_students.items()):
            if student_files.lms or student_files.whole or not key.startswith("id:"):
                continue
            files = [item for item in student_files.items if not item.is_folder]
            for file in unclear(files):
                student_files.items.remove(file)
                self._files_with_key(f"{key}@{file.path.name}", student_files.label).items.append(file)
            if not student_files.items:
                del self.files_of_students[key]

    def _holds_code(self, folder: Path) -> bool:
        return any(Path(plain(entry.name)).suffix.lower() in self._code for entry in folder.iterdir())

    def _is_students(self, folder: Path) -> bool:
        """Whether a folder has a student's id as its name, and files of that student only."""
        ids = self._exact_ids(folder)
        return len(ids) == 1 and is_alike(folder.name, *ids)

    def _is_class(self, folder: Path) -> bool:
        """Whether a folder holds several students' files or folders, as a section does."""
        ids = self._exact_ids(folder)
        if any(is_alike(folder.name, student_id) for student_id in ids):
            return False  # it is one student's, who hands in files named for others
        if len(ids) > 1 or self._is_download(folder):
            return True
        if LONG_NUMBER.search(folder.name) or self._holds_code(folder):
            return False
        return len(set(self._carried(folder))) > 1

    def _is_download(self, folder: Path) -> bool:
        """Whether an LMS named most of what lies in a folder, as when a section was downloaded by itself."""
        children = [
            child
            for child in folder.iterdir()
            if not (is_clutter(Path(child.name)) or is_metadata(child.name))
        ]
        handed = [downloaded_item(child, child.name).handed for child in children]
        if any(
            name.sender_label is None and Path(plain(child.name)).suffix.lower() in self._code
            for name, child in zip(handed, children, strict=True)
        ):
            return False  # code that no LMS named is the student's whose folder it is
        senders = [_sender(name) for name in handed if name.sender_label is not None]
        # a folder with a number in its name may be a student's, with what the student once downloaded
        one_sender = len(set(senders)) == 1 and LONG_NUMBER.search(folder.name)
        return 2 * len(senders) > len(children) and not one_sender

    def _carried(self, folder: Path) -> Iterator[str]:
        """The owners of the folders directly in a folder, by their names."""
        for child in folder.iterdir():
            if child.is_dir() and not child.is_symlink():
                item = downloaded_item(child, child.name)
                if item.handed.sender_label is not None:
                    yield _sender(item.handed)[0]
                elif number := LONG_NUMBER.search(plain(child.name)):
                    yield number[0]

    def _exact_ids(self, folder: Path) -> set[str]:
        """The ids in the names, if they fit exactly or nearly, of the files directly in a folder."""
        matches = (
            own_match(plain(entry.name), self._assignment) for entry in folder.iterdir() if not entry.is_dir()
        )
        return {m.student_id for m in matches if m.student_id and m.closeness <= Closeness.NEARLY}


def _sender(handed: DownloadName) -> tuple[str, str]:
    """(The key of the student's files that a name belongs to, its label)."""
    return f"{handed.lms}:{handed.sender_key}", handed.sender_label or ""


def _parent(place: str) -> str:
    parent = PurePosixPath(place).parent.as_posix()
    return "" if parent == "." else parent
