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
    """One student's files while they are gathered: a heap.

    Attributes:
        key: The same for everything that is this student's.
        label: The label that the files were found under: a folder's name, an LMS's name for a person, an id.
        lms: The LMS that made the label, so that numbers in it are not the student's id; or empty.
        number: The LMS's own number of whoever handed it in; empty if the label has none.
        called: Student's id (empty if the LMS does not know it) -> the name that the LMS has for them.
        known_id: The student's id, if the LMS knows it.
        items: Everything found, including superseded attempts.
        files: The files that count.
        unusable: Archives that could not be unpacked, which stay files.
        set_aside: What does not count, and why; for the student.
        notes: For the student.
        members: The ids of others who handed it in together with the student.
        whole: Whether it is the whole content of one folder, and so one person's.
        parts: The keys of the heaps that were joined to it.
        attempts: The student's attempts that the LMS reports in other ways than by files.
        received_clock: When it was handed in, by a clock whose time zone the LMS does not state.
        rivals: Items that may be one student's attempts or several people's work: only their names say.
    """

    key: str
    label: str
    lms: str = ""
    number: str = ""
    called: dict[str, str] = field(default_factory=dict)
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
    whole: bool = False
    parts: list[str] = field(default_factory=list)
    attempts: list[DownloadName] = field(default_factory=list)
    received_clock: datetime | None = None
    rivals: tuple[str, ...] = ()

    def join(self, other: "StudentFiles") -> None:
        """Take over the content of another heap."""
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

    def sort(self, heap: StudentFiles) -> list[StudentFiles]:
        """Fill the heap's files from its items; returns several heaps if it is several people's work.

        Without an LMS, only names say that the folders, archives and files of a heap are one student's, and
        whoever packs an archive chooses the times in it. If they hold different files for one purpose, they
        stay separate.
        """
        budget = _Budget(self._archive_bytes)
        if not (heap.lms or heap.whole):
            heap.rivals = differing(heap.items)
        last, before = last_attempt(heap.items, heap.attempts)
        if last is not None:
            heap.received_at, heap.received_clock = last.received_at, last.received_clock
        counted, earlier = settled([item for item in heap.items if item not in before])
        earlier += before.items()
        for item, why in earlier:
            self.supersede(heap, item, why)
        # only of what counts: a superseded attempt may have been marked late as well
        heap.marked_late = any(item.handed.late for item in counted)
        heap.modified = max((item.modified() for item in counted), default=0.0)
        parts: dict[str, list[DownloadedItem]] = {}
        for item in counted:
            is_apart = not (heap.lms or heap.whole) and (item.path.is_dir() or item.is_archive)
            parts.setdefault(item.path.name if is_apart else "", []).append(item)
        if len(parts) < 2:
            self._fill(heap, counted, budget)
            return [heap]
        heaps = [self._part(heap, place, items) for place, items in parts.items()]
        for part in heaps:
            self._fill(part, part.items, budget)
        if self._overlap(heaps):
            heaps[0].set_aside += heap.set_aside
            heaps[0].parts.append(heap.key)
            return heaps
        for part in heaps:
            heap.join(part)
        self._settle_far_apart(heap)
        return [heap]

    def _fill(self, heap: StudentFiles, items: Sequence[DownloadedItem], budget: "_Budget") -> None:
        self._take(heap, items, budget, depth=0, nested=0)
        self._settle_far_apart(heap)

    def _part(self, heap: StudentFiles, place: str, items: Sequence[DownloadedItem]) -> StudentFiles:
        """A heap of the items in one place of another heap."""
        part = StudentFiles(f"{heap.key}#{place}", heap.label, items=list(items))
        part.modified = max(item.modified() for item in items)
        return part

    def supersede(self, heap: StudentFiles, item: DownloadedItem, why: str) -> None:
        """Record an earlier attempt as superseded."""
        heap.set_aside.append(RefusedFile(item.name, why))
        for name in files_of(item.path, item.shown):
            self._ledger.note(name, Fate.SUPERSEDED, owner=heap.key, reason=why)

    def _take(
        self,
        heap: StudentFiles,
        counted: Sequence[DownloadedItem],
        budget: "_Budget",
        depth: int,
        nested: int,
    ) -> None:
        for item in counted:
            if item.path.is_dir() and depth >= DEEPEST:
                reason = f"{item.name}: lies too deep within folders. Hand in the files nearer to the top."
                self._refuse(heap, item, reason)
            elif item.path.is_dir():
                self._take_folder(heap, item.path, item, budget, depth + 1, nested)
            elif budget.files >= MOST_FILES:
                self._refuse(
                    heap, item, f"{item.name}: is beyond the first {MOST_FILES} files. Hand in fewer."
                )
            elif item.is_archive:
                self._take_archive(heap, item, budget, depth, nested)
            else:
                budget.files += 1
                heap.files.append(item)

    def _take_folder(
        self,
        heap: StudentFiles,
        folder: Path,
        within: DownloadedItem,
        budget: "_Budget",
        depth: int,
        nested: int,
    ) -> None:
        inside = entries(folder, within.shown, self._ledger, heap.key, within.handed.order)
        counted, earlier = settled(inside)
        for item, why in earlier:
            self.supersede(heap, item, why)
        self._take(heap, counted, budget, depth, nested)

    def _take_archive(
        self, heap: StudentFiles, archive: DownloadedItem, budget: "_Budget", depth: int, nested: int
    ) -> None:
        """Unpack a student's own archive; one that cannot be unpacked stays a file and is refused."""
        if nested >= NESTED or budget.archives >= MOST_ARCHIVES:
            reason = (
                f"{archive.name}: is an archive within archives that was not unpacked. Hand in the files."
            )
            self._keep_unusable(heap, archive, reason)
            return
        self._archives += 1
        budget.archives += 1
        into = self._scratch / "nested" / str(self._archives)
        caps = Caps(total_bytes=budget.bytes, file_bytes=budget.bytes)
        try:
            content = unpacked(archive.path, into, caps, self._opener)
        except SubmissionError as error:
            self._keep_unusable(heap, archive, str(error).replace(archive.path.name, archive.name, 1))
            return
        budget.bytes -= sum(file.stat().st_size for file in content.files)
        for refused in content.refused:
            self._ledger.note(
                f"{archive.shown}/{refused.name}",
                Fate.REFUSED,
                owner=heap.key,
                reason=refused.reason,
                clutter=refused.clutter,
            )
            if not refused.clutter:
                heap.set_aside.append(refused)
        if not content.files:
            reason = f"{archive.name}: holds no file. Pack the files again and upload that."
            self._refuse(heap, archive, reason)
            return
        reason = f"{archive.name}: was unpacked."
        self._ledger.note(archive.shown, Fate.MATCHED, owner=heap.key, reason=reason)
        self._take_folder(heap, into, archive, budget, depth + 1, nested + 1)

    def _overlap(self, heaps: Sequence[StudentFiles]) -> bool:
        """Whether several of the heaps hold different files for one purpose."""
        paths_by_role: dict[str, list[set[Path]]] = {}
        for heap in heaps:
            kinds = {file.path: self._assignment.asked_file(file.name) for file in heap.files}
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

    def _settle_far_apart(self, heap: StudentFiles) -> None:
        """Of homework with the asked name in several places (two archives), the last in time counts.

        If nothing shows which is the last, all stay, and the acceptance chooses by the names.
        """
        alike: dict[str, list[DownloadedItem]] = {}
        for item in heap.files:
            match = own_match(item.name, self._assignment)
            if match.closeness <= Closeness.NEARLY:
                stem = copy_mark(Path(item.name).stem)[0]
                alike.setdefault(f"{stem}{Path(item.name).suffix}".casefold(), []).append(item)
        for group in alike.values():
            if len(group) > 1 and (last := latest(group)):
                for item in group:
                    if item is not last[0]:
                        heap.files.remove(item)
                        self.supersede(heap, item, superseded_reason(item, last[0], last[1]))

    def _keep_unusable(self, heap: StudentFiles, item: DownloadedItem, reason: str) -> None:
        heap.files.append(item)
        heap.unusable.add(item.path)
        self._refuse(heap, item, reason)

    def _refuse(self, heap: StudentFiles, item: DownloadedItem, reason: str) -> None:
        heap.set_aside.append(RefusedFile(item.name, reason))
        for name in files_of(item.path, item.shown):
            self._ledger.note(name, Fate.REFUSED, owner=heap.key, reason=reason)


@dataclass
class _Budget:
    """How much one student's archives may still unpack to, and how many archives and files there were."""

    bytes: int
    archives: int = 0
    files: int = 0
