"""The student's id that an upload carries in the names of its files, or of the folder that they lie in."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from grader.domain.assignment import Assignment
from grader.files.names import plain, sanitized
from grader.intake.naming import Closeness, is_alike, name_match, own_match
from grader.intake.ownership import ours
from grader.intake.student_files import StudentFiles


@dataclass(frozen=True)
class Carried:
    """What the names of an upload say.

    Attributes:
        student_id: As results are listed; empty where they say nothing, or as much for one id as for another.
        closeness: Of the names that say it to what was asked for.
        several: All ids in names that are as was asked for, or nearly so; sorted.
    """

    student_id: str = ""
    closeness: Closeness = Closeness.NONE
    several: tuple[str, ...] = ()


def carried(heaps: Sequence[StudentFiles], assignment: Assignment) -> list[Carried]:
    """What the names of each upload of a class say.

    What several uploads have in their names says nothing where it is a word (`StudentID`), or a number
    somewhere in a name that is not as long as the ids in names that are as was asked for (a date, a size);
    but only where the LMS tells who handed them in.

    Args:
        heaps: One for each upload.
        assignment: Says how files are to be named.
    """
    found = [_carried(heap, assignment) for heap in heaps]
    lengths = {len(one.student_id) for one in found if one.student_id and one.closeness <= Closeness.NEARLY}
    counts = Counter(one.student_id.casefold() for one in found)

    def is_no_id(one: Carried) -> bool:
        is_word = not any(letter.isdigit() for letter in one.student_id)
        is_other = one.closeness is Closeness.ID_ONLY and lengths and len(one.student_id) not in lengths
        return counts[one.student_id.casefold()] > 1 and bool(is_word or is_other)

    return [
        replace(one, student_id="", closeness=Closeness.NONE) if heap.number and is_no_id(one) else one
        for heap, one in zip(heaps, found, strict=True)
    ]


def _carried(heap: StudentFiles, assignment: Assignment) -> Carried:
    matches = [own_match(one.name, assignment) for one in heap.files]
    several = tuple(
        sorted({m.student_id for m in matches if m.student_id and m.closeness <= Closeness.NEARLY})
    )
    for closeness in (Closeness.EXACT, Closeness.NEARLY, Closeness.ID_ONLY):
        ids = _spellings(m.student_id for m in matches if m.student_id and m.closeness is closeness)
        if not ids:
            continue
        # whoever named the folder as ids are knew whose it is
        label_counts = not heap.lms and any(is_alike(heap.label, own) for own in ids)
        if heap.label.casefold() in ids or label_counts:
            return _usable(heap.label, closeness, several)
        most = max(map(len, ids.values()))
        chosen = [min(own) for own in ids.values() if len(own) == most]
        return _usable(chosen[0], closeness, several) if len(chosen) == 1 else Carried(several=several)
    if heap.lms:
        return Carried()
    label = name_match(plain(heap.label), assignment.file_stem)
    return _usable(label.student_id or heap.label, label.closeness, several)


def _usable(student_id: str, closeness: Closeness, several: tuple[str, ...]) -> Carried:
    """The id, unless it is one of those under which uploads are listed while nobody knows whose they are."""
    made = sanitized(student_id)
    return Carried(several=several) if ours(made) else Carried(made, closeness, several)


def _spellings(ids: Iterable[str]) -> dict[str, list[str]]:
    """Id as it compares -> how it is written, once for each name."""
    found: dict[str, list[str]] = {}
    for student_id in ids:
        found.setdefault(student_id.casefold(), []).append(student_id)
    return found
