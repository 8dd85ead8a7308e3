"""Sorts one student's files: settles attempts, walks folders, unpacks archives."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import combinations
from pathlib import Path

from grader.domain.assignment import Assignment
from grader.domain.errors import SubmissionError
from grader.domain.limits import MEGABYTE
from grader.domain.submission import Fate, RefusedFile
from grader.intake.archive_pieces import Caps
from grader.intake.downloaded_files import (
    DownloadedItem,
    Ledger,
    content,
    differing,
    entries,
    files_of,
    last_attempt,
    latest,
    settled,
    superseded_reason,
)
from grader.intake.naming import Closeness, copy_mark, own_match
from grader.intake.unpacking import Opener, unpacked
from grader.lms.system import DownloadName

MOST_FILES, MOST_ARCHIVES = 5_000, 10  # of one student
NESTED = 2  # archives within archives
DEEPEST = 8


@dataclass
class StudentFiles:
    """One student's files while they are gathered.

    Attributes:
        key: The same for everything that is this student's.
        label: The label that the files were found under: a folder's name, an LMS's name for a person, an id.
        lms: The LMS that made the label, so that numbers in it are not the student's id; or empty.
        number: The LMS's own number of whoever handed it in; empty if the label has none.
        names_by_id: Student's id (empty if the LMS does not know it) -> the name that the LMS has for them.
        known_id: The student's id, if the LMS knows it.
        items: Everything found, including superseded attempts.
        files: The files that count.
        unusable: Archives that could not be unpacked, which stay files.
        set_aside: What does not count, and why; for the student.
        notes: For the student.
        members: The ids of others who handed it in together with the student.
        sender: Whose files they are, if a file of groups names the members; empty: the LMS does, or nobody.
        whole: Whether it is the whole content of one folder, and so one person's.
        parts: The keys of others' files that turned out to be this student's and were joined to these.
        attempts: The student's attempts that the LMS reports in other ways than by files.
        received_clock: When it was handed in, by a clock whose time zone the LMS does not state.
        rivals: Items that may be one student's attempts or several people's work: only their names say.
    """

    key: str
    label: str
    lms: str = ""
    number: str = ""
    names_by_id: dict[str, str] = field(default_factory=dict)
    known_id: str | None = None
    received_at: datetime | None = None
    items: list[DownloadedItem] = field(default_factory=list)
    files: list[DownloadedItem] = field(default_factory=list)
    unusable: set[Path] = field(default_factory=set)
    set_aside: list[RefusedFile] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    modified: float = 0.0
    marked_late: bool = False
    members: tuple[str, ...] = ()
    sender: str = ""
    whole: bool = False
    parts: list[str] = field(default_factory=list)
    attempts: list[DownloadName] = field(default_factory=list)
    received_clock: datetime | None = None
    rivals: tuple[str, ...] = ()

    def join(self, other: "StudentFiles") -> None:
        """Take over files that turned out to be this student's, too."""
        self.files += other.files
        self.unusable |= other.unusable
        self.set_aside += other.set_aside
        self.parts.append(other.key)


class Sorting:
    """Turns each student's items into the files that count, and accounts for the others."""

    def __init__(self, assignment: Assignment, scratch: Path, opener: Opener, ledger: Ledger) -> None:
        self._assignment = assignment
        self._archive_bytes = assignment.limits.archive_mb * MEGABYTE
        self._scratch = scratch
        self._opener = opener
        self._ledger = ledger
        self._archives = 0

    def sort(self, student_files: StudentFiles) -> list[StudentFiles]:
        """Fill `files` from `items`; returns one element per person if the items are several people's work.

        Without an LMS, only names say that folders, archives and files are one student's, and whoever packs
        an archive chooses the times in it. If they hold different files for one purpose, they stay separate.
        """
        budget = _Budget(self._archive_bytes)
        if not (student_files.lms or student_files.whole):
            student_files.rivals = differing(student_files.items)
        last, before = last_attempt(student_files.items, student_files.attempts)
        if last is not None:
            student_files.received_at, student_files.received_clock = last.received_at, last.received_clock
        counted, earlier = settled([item for item in student_files.items if item not in before])
        earlier += before.items()
        for item, why in earlier:
            self.supersede(student_files, item, why)
        # only of what counts: a superseded attempt may have been marked late as well
        student_files.marked_late = any(item.handed.late for item in counted)
        student_files.modified = max((item.modified() for item in counted), default=0.0)
        parts: dict[str, list[DownloadedItem]] = {}
        for item in counted:
            is_apart = not (student_files.lms or student_files.whole) and (item.is_folder or item.is_archive)
            parts.setdefault(item.path.name if is_apart else "", []).append(item)
        if len(parts) < 2:
            self._fill(student_files, counted, budget)
            return [student_files]
        files_of_students = [self._part(student_files, place, items) for place, items in parts.items()]
        for part in files_of_students:
            self._fill(part, part.items, budget)
        if self._overlap(files_of_students):
            files_of_students[0].set_aside += student_files.set_aside
            files_of_students[0].parts.append(student_files.key)
            return files_of_students
        for part in files_of_students:
            student_files.join(part)
        self._settle_far_apart(student_files)
        return [student_files]

    def _fill(self, student_files: StudentFiles, items: Sequence[DownloadedItem], budget: "_Budget") -> None:
        self._take(student_files, items, budget, depth=0, nested=0)
        self._settle_far_apart(student_files)

    def _part(self, student_files: StudentFiles, place: str, items: Sequence[DownloadedItem]) -> StudentFiles:
        """The files in one place, separate from the student's others."""
        part = StudentFiles(f"{student_files.key}#{place}", student_files.label, items=list(items))
        part.modified = max(item.modified() for item in items)
        return part

    def supersede(self, student_files: StudentFiles, item: DownloadedItem, why: str) -> None:
        """Record an earlier attempt as superseded."""
        student_files.set_aside.append(RefusedFile(item.name, why))
        for name in files_of(item.path, item.shown):
            self._ledger.note(name, Fate.SUPERSEDED, owner=student_files.key, reason=why)

    def _take(
        self,
        student_files: StudentFiles,
        counted: Sequence[DownloadedItem],
        budget: "_Budget",
        depth: int,
        nested: int,
    ) -> None:
        for item in counted:
            if item.is_folder and depth >= DEEPEST:
                reason = f"{item.name}: lies too deep within folders. Hand in the files nearer to the top."
                self._refuse(student_files, item, reason)
            elif item.is_folder:
                self._take_folder(student_files, item.path, item, budget, depth + 1, nested)
            elif budget.files >= MOST_FILES:
                self._refuse(
                    student_files,
                    item,
                    f"{item.name}: is beyond the first {MOST_FILES} files. Hand in fewer.",
                )
            elif item.is_archive:
                self._take_archive(student_files, item, budget, depth, nested)
            else:
                budget.files += 1
                student_files.files.append(item)

    def _take_folder(
        self,
        student_files: StudentFiles,
        folder: Path,
        within: DownloadedItem,
        budget: "_Budget",
        depth: int,
        nested: int,
    ) -> None:
        inside = entries(folder, within.shown, self._ledger, student_files.key, within.handed.order)
        counted, earlier = settled(inside)
        for item, why in earlier:
            self.supersede(student_files, item, why)
        self._take(student_files, counted, budget, depth, nested)

    def _take_archive(
        self, student_files: StudentFiles, archive: DownloadedItem, budget: "_Budget", depth: int, nested: int
    ) -> None:
        """Unpack a student's own archive; one that cannot be unpacked stays a file and is refused."""
        if nested >= NESTED or budget.archives >= MOST_ARCHIVES:
            reason = (
                f"{archive.name}: is an archive within archives that was not unpacked. Hand in the files."
            )
            self._keep_unusable(student_files, archive, reason)
            return
        self._archives += 1
        budget.archives += 1
        into = self._scratch / "nested" / str(self._archives)
        caps = Caps(total_bytes=budget.bytes, file_bytes=budget.bytes)
        try:
            content = unpacked(archive.path, into, caps, self._opener)
        except SubmissionError as error:
            self._keep_unusable(
                student_files, archive, str(error).replace(archive.path.name, archive.name, 1)
            )
            return
        budget.bytes -= sum(file.stat().st_size for file in content.files)
        for refused in content.refused:
            self._ledger.note(
                f"{archive.shown}/{refused.name}",
                Fate.REFUSED,
                owner=student_files.key,
                reason=refused.reason,
                clutter=refused.clutter,
            )
            if not refused.clutter:
                student_files.set_aside.append(refused)
        if not content.files:
            reason = f"{archive.name}: holds no file. Pack the files again and upload that."
            self._refuse(student_files, archive, reason)
            return
        reason = f"{archive.name}: was unpacked."
        self._ledger.note(archive.shown, Fate.MATCHED, owner=student_files.key, reason=reason)
        self._take_folder(student_files, into, archive, budget, depth + 1, nested + 1)

    def _overlap(self, files_of_students: Sequence[StudentFiles]) -> bool:
        """Whether several of them hold different files for one purpose."""
        paths_by_role: dict[str, list[set[Path]]] = {}
        for student_files in files_of_students:
            kinds = {file.path: self._assignment.asked_file(file.name) for file in student_files.files}
            roles = {path: asked.role if asked else None for path, asked in kinds.items()}
            for role in set(roles.values()) - {None}:
                assert role is not None
                paths_by_role.setdefault(role, []).append(
                    {path for path, role_of_path in roles.items() if role_of_path == role}
                )
        return any(
            set(map(content, paths)) != set(map(content, other_paths))
            for path_sets in paths_by_role.values()
            for paths, other_paths in combinations(path_sets, 2)
        )

    def _settle_far_apart(self, student_files: StudentFiles) -> None:
        """Of homework with the asked name in several places (two archives), the last in time counts.

        If nothing shows which is the last, all stay, and the acceptance chooses by the names.
        """
        alike: dict[str, list[DownloadedItem]] = {}
        for item in student_files.files:
            match = own_match(item.name, self._assignment)
            if match.closeness <= Closeness.NEARLY:
                stem = copy_mark(Path(item.name).stem)[0]
                alike.setdefault(f"{stem}{Path(item.name).suffix}".casefold(), []).append(item)
        for group in alike.values():
            if len(group) > 1 and (last := latest(group)):
                for item in group:
                    if item is not last[0]:
                        student_files.files.remove(item)
                        self.supersede(student_files, item, superseded_reason(item, last[0], last[1]))

    def _keep_unusable(self, student_files: StudentFiles, item: DownloadedItem, reason: str) -> None:
        student_files.files.append(item)
        student_files.unusable.add(item.path)
        self._refuse(student_files, item, reason)

    def _refuse(self, student_files: StudentFiles, item: DownloadedItem, reason: str) -> None:
        student_files.set_aside.append(RefusedFile(item.name, reason))
        for name in files_of(item.path, item.shown):
            self._ledger.note(name, Fate.REFUSED, owner=student_files.key, reason=reason)


@dataclass
class _Budget:
    """How much one student's archives may still unpack to, and how many archives and files there were."""

    bytes: int
    archives: int = 0
    files: int = 0
