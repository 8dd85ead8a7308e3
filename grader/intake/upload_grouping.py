"""Which files are of one upload: the heaps of all students, gathered from a class's folders and files."""

from collections.abc import Iterator
from datetime import datetime
from itertools import combinations
from pathlib import Path, PurePosixPath

from grader.domain.assignment import Assignment
from grader.domain.errors import SubmissionError
from grader.domain.submission import Fate, Lacking, Role
from grader.files.file_names import plain
from grader.intake.downloaded_files import DownloadedItem, Ledger, entries, found, told, unclear
from grader.intake.naming import LONG_NUMBER, Closeness, is_alike, own_match, refused_name
from grader.intake.student_files import DEEPEST, Sorting, StudentFiles
from grader.intake.unpacking import Opener
from grader.lms.downloads import is_metadata, read_together, submission_list
from grader.lms.system import DownloadName, SubmissionList, submissions_sorted_by_time

TABLE = ".csv"
ANY = "any"  # the kind of what may hold files of every kind


class Gathering:
    """The heaps of a class.

    Attributes:
        heaps: By their keys.
        notes: Sentences about the whole.
        lacking: What an LMS lists and its export lacks.
        tables: The files of nobody that may be lists of the class.

    Args:
        assignment: Says how files are named.
        scratch: A folder of ours for what is unpacked.
        opener: Who opens archives.
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
        self.heaps: dict[str, StudentFiles] = {}
        self.notes: list[str] = []
        self.lacking: list[Lacking] = []
        self.tables: list[DownloadedItem] = []
        self._root = ""  # where the class's folder lies in the download
        self._kinds: dict[str, set[str]] = {}  # place -> of what kinds the students' files in it are
        self._assignment = assignment
        self._until = until
        self._ledger = ledger
        self._opener = opener
        self._sorting = Sorting(assignment, scratch, opener, ledger)
        self._code = {s for file in assignment.files if file.role == Role.CODE for s in file.suffixes}

    def gather(self, folder: Path, label: str) -> None:
        """Gather all heaps below a folder, and sort them.

        Args:
            folder: Students' files side by side, a folder for each student, sections, or an export.
            label: Its name for a person, which names the student if it is one student's folder after all.
        """
        self._add_class(folder, "", label, depth=0)
        self._join_kinds()
        self._part_unclear()
        self.heaps = {one.key: one for heap in self.heaps.values() for one in self._sorting.sort(heap)}

    def gather_file(self, path: Path) -> None:
        """Gather a file that is given by itself: it is the only one of its upload."""
        one = found(path, path.name)
        own = Path(one.name).stem
        self._add(one, self._owner(one) or (f"file:{own}", own))
        (heap,) = self.heaps.values()
        heap.files = list(heap.items)

    def _add_class(self, folder: Path, shown: str, label: str, depth: int) -> None:
        inside = self._read_together(entries(folder, shown, self._ledger))
        folders = [one for one in inside if one.path.is_dir()]
        files = [one for one in inside if not one.path.is_dir()]
        only = folders[0] if not files and len(folders) == 1 else None
        if only and depth < DEEPEST and only.handed.holder is None and not self._is_students(only.path):
            self._root = only.shown if self._root == shown else self._root
            self._add_class(only.path, only.shown, only.path.name, depth + 1)
            return
        metadata = [one for one in files if is_metadata(one.path.name)]
        if metadata and (listed := self._listed(metadata[0])) is not None:
            self._add_listed(listed, [one for one in inside if one is not metadata[0]])
            return
        files = [one for one in files if one not in metadata]
        own = [one for one in files if Path(one.name).suffix.lower() in self._code]
        if (
            own
            and not any(map(self._owner, files))
            and not any(self._holds_code(one.path) for one in folders)
        ):
            name = label if shown == self._root else self._place(shown)
            heap = self._heap(*(self._named(label, name) or (f"folder:{name}", label)))
            heap.items, heap.whole = [*heap.items, *inside], True
            return
        for one in files:
            self._add_loose(one)
        for one in folders:
            if one.handed.holder is None and depth < DEEPEST and self._is_class(one.path):
                self._add_class(one.path, one.shown, one.path.name, depth + 1)
            else:
                self._add_folder(one)

    def _add_loose(self, one: DownloadedItem) -> None:
        """Gather a file that lies beside those of others."""
        owner = self._owner(one)
        if owner is None and one.is_archive:
            owner = (f"archive:{self._place(one.shown)}", Path(one.name).stem)
        if (reason := refused_name(one.name)) is not None and one.handed.holder is None:
            self._ledger.note(one.shown, Fate.REFUSED, reason=reason)
        elif owner is None:
            suffix = Path(one.name).suffix.lower()
            kind = self._assignment.asked_file(one.name)
            stem = self._assignment.file_stem.replace("{student_id}", "<StudentID>")
            asked = kind.name("<StudentID>", suffix) if kind is not None else f"{stem}.py"
            reason = f"{one.name}: its name does not say whose it is. Rename it like {asked}."
            self._ledger.note(one.shown, Fate.REFUSED, reason=reason)
            if suffix == TABLE:
                self.tables.append(one)
        else:
            self._add(one, owner)

    def _add_folder(self, one: DownloadedItem) -> None:
        """Gather a student's folder."""
        # the folder of a student whose id it carries joins that student's other folders and files beside it
        named = (f"folder:{self._place(one.shown)}", one.path.name)
        self._add(one, self._owner(one) or named)

    def _add(self, one: DownloadedItem, owner: tuple[str, str]) -> None:
        heap = self._heap(*owner) if one.handed.holder is None else self._heap_of(one.handed)
        heap.items.append(one)
        if not one.handed.lms:
            kind = ANY if one.path.is_dir() or one.is_archive else self._kind(one)
            self._kinds.setdefault(_parent(self._place(one.shown)), set()).add(kind)

    def _read_together(self, inside: list[DownloadedItem]) -> list[DownloadedItem]:
        """The same with what names tell only together, without the files that an LMS put there itself."""
        by_name = {one.path.name: one for one in inside}
        together = read_together({name: one.path for name, one in by_name.items()})
        for name, reason in together.own.items():
            self._ledger.note(by_name.pop(name).shown, Fate.MATCHED, reason=reason)
        for attempt in together.attempts:
            if not self._is_later(attempt.received_at):
                self._heap_of(attempt).attempts.append(attempt)
        names = together.names
        items = [item.told(names[name]) if name in names else item for name, item in by_name.items()]
        return [item for item in items if not self._is_later(item.handed.received_at)]

    def _is_later(self, received_at: datetime | None) -> bool:
        """Whether something came after the moment that counts; what nobody knows the time of did not."""
        return self._until is not None and received_at is not None and received_at > self._until

    def _listed(self, metadata: DownloadedItem) -> SubmissionList | None:
        """What the metadata of an export tells; a file that cannot be read is accounted for."""
        name = metadata.path.name
        try:
            listed = submission_list(name, self._opener.metadata_rows(metadata.path))
        except SubmissionError as error:
            self._ledger.note(metadata.shown, Fate.REFUSED, reason=str(error))
            return None
        reason = f"{name.casefold()}: was read: it tells who handed in what, and when."
        self._ledger.note(metadata.shown, Fate.MATCHED, reason=reason)
        return listed

    def _add_listed(self, listed: SubmissionList, inside: list[DownloadedItem]) -> None:
        """Gather the folders of an export by the students that the LMS knows."""
        later = {folder for folder, known in listed.known.items() if self._is_later(known.created_at)}
        if later:
            earlier = [known for folder, known in listed.known.items() if folder not in later]
            listed = submissions_sorted_by_time(listed.lms, earlier)
        by_name = {item.path.name: item for item in inside if item.path.name not in later}
        inside = list(by_name.values())
        self.notes += listed.notes(by_name)
        self.lacking += listed.lacking(by_name)
        for one in inside:
            known = listed.known.get(one.path.name)
            if known is None:
                self._add_folder(one) if one.path.is_dir() else self._add_loose(one)
                continue
            student = listed.owner(known.folder)
            key = f"{listed.lms}:{student or known.folder}"
            heap = self._heap(key, student or known.folder, listed.lms)
            heap.known_id = student
            counts = listed.counting(known.folder)
            if counts == known.folder or counts not in by_name:
                heap.items.append(one)
                heap.received_at = known.created_at
                heap.called = dict(zip(known.students, known.names, strict=False))
                heap.notes += listed.shared(known.folder)
                heap.members = listed.members(known.folder) if counts == known.folder else ()
                continue
            why = told(one, by_name[counts], f"which {listed.lms} received later")
            self._sorting.supersede(heap, one, why)

    def _owner(self, one: DownloadedItem) -> tuple[str, str] | None:
        """(The key of the heap that a file or a folder belongs to by its name, its label), or None."""
        if one.handed.holder is not None:
            return _holder(one.handed)
        return self._named(one.name, self._place(one.shown))

    def _named(self, name: str, place: str) -> tuple[str, str] | None:
        """(Key, label) of the heap of a student whose id is in a name, or None.

        Args:
            place: Where it lies within the class's folder: one id in several places may be several people's.
        """
        student_id = own_match(plain(name), self._assignment).student_id
        at = f"@{_parent(place)}" if _parent(place) else ""
        return (f"id:{student_id.casefold()}{at}", student_id) if student_id else None

    def _heap(self, key: str, label: str, lms: str = "") -> StudentFiles:
        return self.heaps.setdefault(key, StudentFiles(key, label, lms))

    def _heap_of(self, handed: DownloadName) -> StudentFiles:
        """The heap of whoever the LMS says handed something in."""
        heap = self._heap(*_holder(handed), handed.lms)
        heap.number, heap.called = handed.number, {"": handed.called}
        return heap

    def _place(self, shown: str) -> str:
        """Where something lies within the class's folder."""
        return shown.removeprefix(f"{self._root}/") if self._root else shown

    def _kind(self, one: DownloadedItem) -> str:
        """What a file is for, by its suffix."""
        asked = self._assignment.asked_file(one.name)
        return asked.role if asked is not None else Path(one.name).suffix.lower()

    def _join_kinds(self) -> None:
        """Join a student's files that lie in a folder for each kind of file: `code`, `weights`, `reports`."""
        by_id: dict[str, list[StudentFiles]] = {}
        for key, heap in self.heaps.items():
            if key.startswith("id:"):
                by_id.setdefault(key.partition("@")[0], []).append(heap)
        for heaps in by_id.values():
            kinds = [self._kinds.get(heap.key.partition("@")[2], {ANY}) for heap in heaps]
            if any(ANY in one or ANY in other or one & other for one, other in combinations(kinds, 2)):
                continue
            for heap in heaps[1:]:
                heaps[0].items += heap.items
                del self.heaps[heap.key]

    def _part_unclear(self) -> None:
        """Part what may be one student's attempts or several people's, where nothing tells which counts.

        Side by side without an LMS the name is all that says whose a file is.
        """
        for key, heap in list(self.heaps.items()):
            if heap.lms or heap.whole or not key.startswith("id:"):
                continue
            for one in unclear([item for item in heap.items if not item.path.is_dir()]):
                heap.items.remove(one)
                self._heap(f"{key}@{one.path.name}", heap.label).items.append(one)
            if not heap.items:
                del self.heaps[key]

    def _holds_code(self, folder: Path) -> bool:
        return any(Path(plain(entry.name)).suffix.lower() in self._code for entry in folder.iterdir())

    def _is_students(self, folder: Path) -> bool:
        """Whether a folder has a student's id as its name, and files of that student alone."""
        ids = self._exact_ids(folder)
        return len(ids) == 1 and is_alike(folder.name, *ids)

    def _is_class(self, folder: Path) -> bool:
        """Whether a folder holds several students' files or folders, as a section does."""
        ids = self._exact_ids(folder)
        if any(is_alike(folder.name, one) for one in ids):
            return False  # a student's, who hands in files named for others
        if len(ids) > 1:
            return True
        if LONG_NUMBER.search(folder.name) or self._holds_code(folder):
            return False
        return len(set(self._carried(folder))) > 1

    def _carried(self, folder: Path) -> Iterator[str]:
        """Whose the folders right in a folder are, by their own names."""
        for child in folder.iterdir():
            if child.is_dir() and not child.is_symlink():
                one = found(child, child.name)
                if one.handed.holder is not None:
                    yield _holder(one.handed)[0]
                elif number := LONG_NUMBER.search(plain(child.name)):
                    yield number[0]

    def _exact_ids(self, folder: Path) -> set[str]:
        """The ids in the names, as asked for or nearly so, of the files right in a folder."""
        matches = (
            own_match(plain(entry.name), self._assignment) for entry in folder.iterdir() if not entry.is_dir()
        )
        return {m.student_id for m in matches if m.student_id and m.closeness <= Closeness.NEARLY}


def _holder(handed: DownloadName) -> tuple[str, str]:
    """(The key of the heap that a name belongs to, its label)."""
    return f"{handed.lms}:{handed.person}", handed.holder or ""


def _parent(place: str) -> str:
    parent = PurePosixPath(place).parent.as_posix()
    return "" if parent == "." else parent
