"""One student's heap of files: attempts settled, folders walked, archives unpacked."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import combinations
from pathlib import Path

from grader.domain.assignment import MEGABYTE, Assignment
from grader.domain.errors import SubmissionError
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
    told,
)
from grader.intake.naming import Closeness, copy_mark, own_match
from grader.intake.unpacking import Opener, unpacked
from grader.lms.system import DownloadName

MOST_FILES = 20_000
MOST_ARCHIVES = 10  # of one student
NESTED = 2  # archives within archives
DEEPEST = 8


@dataclass
class StudentFiles:
    """One student's files while they are gathered.

    Attributes:
        key: The same for everything that is this student's.
        label: What the files were found under: a folder's name, an LMS's name of a person, an id.
        lms: Which LMS the label is of, so that numbers in it are not the student's id; or empty.
        number: The LMS's own number of whoever handed it in; empty where the label tells none.
        called: Student's id, or nothing where the LMS knows none -> the name that the LMS has for them.
        known_id: The student's id, where the LMS knows it.
        items: What was found, attempts among it.
        files: What counts.
        unusable: Archives that could not be unpacked, which stay files.
        set_aside: For the student: what does not count, and why.
        notes: For the student.
        members: The ids of others who handed it in together with the student.
        whole: It is all that lies in one folder, and so one person's.
        parts: The keys of the heaps that joined it.
        attempts: What the LMS tells of those that it has of the student, by other than the files.
        received_clock: When it was handed in by a clock whose time zone the LMS does not say.
        rivals: What of it is one student's attempts, or several people's work: nothing but names tells.
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
        """Take what another heap holds."""
        self.files += other.files
        self.unusable |= other.unusable
        self.set_aside += other.set_aside
        self.parts.append(other.key)


class Sorting:
    """Turns what was found of each student into the files that count, and accounts for the others."""

    def __init__(self, assignment: Assignment, scratch: Path, opener: Opener, ledger: Ledger) -> None:
        self._assignment = assignment
        self._archive_bytes = assignment.limits.archive_mb * MEGABYTE
        self._scratch = scratch
        self._opener = opener
        self._ledger = ledger
        self._count = 0
        self._archives = 0

    def sort(self, heap: StudentFiles) -> list[StudentFiles]:
        """Fill the heap's files from its items; several heaps where it turns out to be several people's.

        Without an LMS nothing but a name says that the folders, archives and files of a heap are one
        student's, and whoever packs an archive chooses the times in it. Where they hold different files for
        one purpose, they stay apart.
        """
        budget = _Budget(self._archive_bytes)
        if not (heap.lms or heap.whole):
            heap.rivals = differing(heap.items)
        last, before = last_attempt(heap.items, heap.attempts)
        if last is not None:
            heap.received_at, heap.received_clock = last.received_at, last.received_clock
        counted, earlier = settled([one for one in heap.items if one not in before])
        earlier += before.items()
        for one, why in earlier:
            self.supersede(heap, one, why)
        # of a single attempt: one that does not count may have been marked as well
        heap.marked_late = any(one.handed.late for one in counted)
        heap.modified = max((one.modified() for one in counted), default=0.0)
        parts: dict[str, list[DownloadedItem]] = {}
        for one in counted:
            is_apart = not (heap.lms or heap.whole) and (one.path.is_dir() or one.is_archive)
            parts.setdefault(one.path.name if is_apart else "", []).append(one)
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
        """A heap of what lies in one place of another one."""
        part = StudentFiles(f"{heap.key}#{place}", heap.label, items=list(items))
        part.modified = max(one.modified() for one in items)
        return part

    def supersede(self, heap: StudentFiles, one: DownloadedItem, why: str) -> None:
        """Keep an earlier attempt in sight."""
        heap.set_aside.append(RefusedFile(one.name, why))
        for name in files_of(one.path, one.shown):
            self._ledger.note(name, Fate.SUPERSEDED, owner=heap.key, reason=why)

    def _take(
        self,
        heap: StudentFiles,
        counted: Sequence[DownloadedItem],
        budget: "_Budget",
        depth: int,
        nested: int,
    ) -> None:
        for one in counted:
            if one.path.is_dir() and depth >= DEEPEST:
                reason = f"{one.name}: lies too deep within folders. Hand in the files near the top."
                self._refuse(heap, one, reason)
            elif one.path.is_dir():
                self._take_folder(heap, one.path, one, budget, depth + 1, nested)
            elif self._count >= MOST_FILES:
                self._refuse(heap, one, f"{one.name}: is beyond the first {MOST_FILES} files. Hand in less.")
            elif one.is_archive:
                self._take_archive(heap, one, budget, depth, nested)
            else:
                self._count += 1
                heap.files.append(one)

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
        for one, why in earlier:
            self.supersede(heap, one, why)
        self._take(heap, counted, budget, depth, nested)

    def _take_archive(
        self, heap: StudentFiles, one: DownloadedItem, budget: "_Budget", depth: int, nested: int
    ) -> None:
        """Unpack a student's own archive; one that cannot be unpacked stays a file, to be refused."""
        if nested >= NESTED or budget.archives >= MOST_ARCHIVES:
            reason = f"{one.name}: is an archive within archives that was not unpacked. Hand in the files."
            self._stays(heap, one, reason)
            return
        self._archives += 1
        budget.archives += 1
        into = self._scratch / "nested" / str(self._archives)
        caps = Caps(total_bytes=budget.bytes, file_bytes=budget.bytes)
        try:
            content = unpacked(one.path, into, caps, self._opener)
        except SubmissionError as error:
            self._stays(heap, one, str(error).replace(one.path.name, one.name, 1))
            return
        budget.bytes -= sum(file.stat().st_size for file in content.files)
        for refused in content.refused:
            self._ledger.note(
                f"{one.shown}/{refused.name}",
                Fate.REFUSED,
                owner=heap.key,
                reason=refused.reason,
                clutter=refused.clutter,
            )
            if not refused.clutter:
                heap.set_aside.append(refused)
        if not content.files:
            reason = f"{one.name}: holds no file. Pack the files again and upload that."
            self._refuse(heap, one, reason)
            return
        reason = f"{one.name}: was unpacked."
        self._ledger.note(one.shown, Fate.MATCHED, owner=heap.key, reason=reason)
        self._take_folder(heap, into, one, budget, depth + 1, nested + 1)

    def _overlap(self, heaps: Sequence[StudentFiles]) -> bool:
        """Whether several of the heaps hold different files for one purpose."""
        found: dict[str, list[set[Path]]] = {}
        for heap in heaps:
            kinds = {one.path: self._assignment.asked_file(one.name) for one in heap.files}
            roles = {path: asked.role if asked else None for path, asked in kinds.items()}
            for role in set(roles.values()) - {None}:
                assert role is not None
                found.setdefault(role, []).append({path for path, own in roles.items() if own == role})
        return any(
            set(map(content, one)) != set(map(content, other))
            for places in found.values()
            for one, other in combinations(places, 2)
        )

    def _settle_far_apart(self, heap: StudentFiles) -> None:
        """Of homework under the asked name in several places (two archives), the last in time counts.

        Where nothing tells which is the last, all stay, and the acceptance chooses by the names.
        """
        alike: dict[str, list[DownloadedItem]] = {}
        for one in heap.files:
            match = own_match(one.name, self._assignment)
            if match.closeness <= Closeness.NEARLY:
                stem = copy_mark(Path(one.name).stem)[0]
                alike.setdefault(f"{stem}{Path(one.name).suffix}".casefold(), []).append(one)
        for group in alike.values():
            if len(group) > 1 and (last := latest(group)):
                for one in group:
                    if one is not last[0]:
                        heap.files.remove(one)
                        self.supersede(heap, one, told(one, last[0], last[1]))

    def _stays(self, heap: StudentFiles, one: DownloadedItem, reason: str) -> None:
        heap.files.append(one)
        heap.unusable.add(one.path)
        self._refuse(heap, one, reason)

    def _refuse(self, heap: StudentFiles, one: DownloadedItem, reason: str) -> None:
        heap.set_aside.append(RefusedFile(one.name, reason))
        for name in files_of(one.path, one.shown):
            self._ledger.note(name, Fate.REFUSED, owner=heap.key, reason=reason)


@dataclass
class _Budget:
    """What one student's archives may still unpack to."""

    bytes: int
    archives: int = 0
