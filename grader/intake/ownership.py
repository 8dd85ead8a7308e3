"""Whose each upload is: by a person's word, by the LMS, by the names of files; else nobody's yet.

What the LMS knows (its metadata, its list of the class with the number that the download has) outranks
the ids in names, which students choose. The ids that an upload carries in the names of its files or
folders are read here, too. Of uploads whose names carry one id, of which the LMS says nothing, none gets
the id: a person says whose each is. No order of labels decides anything.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

from grader.domain.assignment import Assignment
from grader.domain.submission import KnownUpload, Origin
from grader.files.file_names import plain, sanitized
from grader.intake.naming import Closeness, is_alike, name_match, own_match
from grader.intake.student_files import StudentFiles
from grader.lms import LMSS
from grader.lms.roster import Directory

_LABELS = {one.name: one.label_without_name for one in LMSS if one.label_without_name}
# ids under which uploads are listed while nobody knows whose they are: no student can have one of these
_OURS = re.compile(
    "|".join(
        [
            rf"(?:upload|{'|'.join(one.name.lower() for one in LMSS)})-.+",
            *(label.pattern for label in _LABELS.values()),
        ]
    ),
    re.IGNORECASE,
)
_LONGEST = 40  # letters of an upload's name in such an id
EARLIER = "earlier:"  # the key of what an earlier version recorded, which noted no upload, begins so


@dataclass(frozen=True)
class Verdict:
    """Whose an upload is.

    Attributes:
        origin: With what the LMS says of it.
        student_id: The id that it gets.
        held: Why nobody knows whose it is, in a sentence without names of people; else empty.
        counts: It is the one that counts for that id.
        before: The gradebook's result of it.
    """

    origin: Origin
    student_id: str
    held: str = ""
    counts: bool = True
    before: KnownUpload | None = None


def ours(student_id: str) -> bool:
    """Whether an id is one of those under which uploads are listed while nobody knows whose they are."""
    return _OURS.fullmatch(student_id) is not None


def are_alike(student_id: str, other: str) -> bool:
    """Whether two ids may be of one kind: numbers of one length, or no numbers."""
    if student_id.isdecimal() or other.isdecimal():
        return student_id.isdecimal() and other.isdecimal() and len(student_id) == len(other)
    return True


def listed_as(key: str, lms: str, number: str, upload: str) -> str:
    """The id under which an upload is listed while nobody knows whose it is.

    Args:
        key: The same for the same upload of another download.
        lms: Empty where the upload is no LMS's.
        number: The LMS's own number of whoever handed it in, where the download tells it.
        upload: What the download calls it.
    """
    by_number = f"{lms.lower()}-{number}"
    if lms and number and by_number == sanitized(by_number):
        return by_number
    if lms in _LABELS and ours(upload):
        return upload
    digest = hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()[:8]
    return f"upload-{sanitized(upload)[:_LONGEST].strip('_-')}-{digest}"


def verdicts(
    uploads: Mapping[str, tuple[Origin, str]], directory: Directory, known: Sequence[KnownUpload] = ()
) -> dict[str, Verdict]:
    """Whose each upload is, by its key: of those that are here, and of those that the gradebook knows.

    Args:
        uploads: Key -> the upload as it is here, and the digest of its files.
        directory: What the LMS's list of the class says.
        known: The uploads that the gradebook has results of.
    """
    before = _known_by_key(uploads, known)
    if _is_of_another_kind(directory, (origin for origin, _ in uploads.values())):
        directory = directory.unsure()
    claims = [_claim(origin, directory, before.get(key)) for key, (origin, _) in uploads.items()]
    claims += [_claim(one.origin, directory, one) for key, one in before.items() if key not in uploads]
    rivals = {claim.origin.key: _rivals(claim, group) for group in _by_id(claims) for claim in group}
    # who is somebody else by the list need not wait for what others' files say
    claims = [
        claim.by_the_list() if claim.otherwise and (rivals[claim.origin.key] or claim.refuted) else claim
        for claim in claims
    ]
    return {
        claim.origin.key: _verdict(claim, group, rivals[claim.origin.key], frozenset(uploads))
        for group in _by_id(claims)
        for claim in group
    }


def _is_of_another_kind(directory: Directory, origins: Iterable[Origin]) -> bool:
    """Whether the list's numbers of students are others than those by which files are to be named.

    That is so where no upload carries the number that the list has, and most carry something else altogether.
    """
    pairs = [
        (listed.student_id, origin.carries)
        for origin in origins
        if origin.carries and (listed := directory.of(origin)) is not None and listed.sure
    ]
    if any(one.casefold() == other.casefold() for one, other in pairs):
        return False
    return 2 * sum(are_alike(one, other) for one, other in pairs) < len(pairs)


class _Weight(IntEnum):
    """What says whose an upload is."""

    NOTHING = 0
    NAMES = 1
    LMS = 2
    PERSON = 3


@dataclass(frozen=True)
class _Claim:
    """Whose an upload is by what is known of it alone.

    Attributes:
        otherwise: Of one that goes by names: what the LMS's list, which knows no student's number of whoever
            handed it in, calls the person.
        refuted: The id in its names is another's by the list.
    """

    origin: Origin
    student_id: str
    weight: _Weight
    otherwise: str = ""
    refuted: bool = False
    before: KnownUpload | None = None

    def by_the_list(self) -> "_Claim":
        """The same by what the list knows of whoever handed it in."""
        origin = replace(self.origin, known_id=self.otherwise)
        return _Claim(origin, self.otherwise, _Weight.LMS, before=self.before)


def _known_by_key(
    uploads: Mapping[str, tuple[Origin, str]], known: Sequence[KnownUpload]
) -> dict[str, KnownUpload]:
    """The known uploads under the keys that they have here: what was packed anew is known by its files."""
    found = {one.origin.key: one for one in known}
    new = Counter(digest for key, (_, digest) in uploads.items() if key not in found)
    gone = {one.digest: one for one in known if one.origin.key not in uploads}
    for key, (origin, digest) in uploads.items():
        one = gone.get(digest)
        if key in found or one is None or not digest or new[digest] > 1 or _apart(one.origin, origin):
            continue
        if one.decided or one.origin.known_id:
            continue  # what is said of an upload holds for that one
        del found[one.origin.key]
        found[key] = one
    return found


def _apart(one: Origin, other: Origin) -> bool:
    """Whether two uploads are two people's by the LMS."""
    return bool(one.number and other.number and (one.lms, one.number) != (other.lms, other.number))


def _claim(origin: Origin, directory: Directory, before: KnownUpload | None) -> _Claim:
    listed = directory.of(origin)
    if before is not None:  # what was known when it was graded is known still: a list need not be given twice
        origin = replace(
            origin,
            person=before.origin.person or origin.person,
            known_id=origin.known_id or before.origin.known_id,
        )
    if listed is not None:
        origin = replace(
            origin,
            person=listed.person or origin.person,
            known_id=listed.student_id if listed.sure else origin.known_id,
        )
    if before is not None and before.decided:
        weight = _Weight.NOTHING if before.held else _Weight.PERSON
        return _Claim(origin, before.student_id, weight, before=before)
    if origin.known_id:
        return _Claim(origin, sanitized(origin.known_id), _Weight.LMS, before=before)
    if not origin.carries:
        return _Claim(origin, origin.listed_as, _Weight.NOTHING, before=before)
    otherwise = (listed.student_id or origin.listed_as) if listed is not None else ""
    return _Claim(
        origin, origin.carries, _Weight.NAMES, otherwise, refuted=directory.others(origin), before=before
    )


def _by_id(claims: Iterable[_Claim]) -> Iterable[Sequence[_Claim]]:
    groups: dict[str, list[_Claim]] = {}
    for claim in claims:
        groups.setdefault(claim.student_id.casefold(), []).append(claim)
    return groups.values()


def _rivals(claim: _Claim, group: Sequence[_Claim]) -> tuple[_Claim, ...]:
    """The other uploads with the id of one that goes by names; none for one that is known otherwise."""
    if claim.weight is not _Weight.NAMES:
        return ()
    noted = [one for one in group if not one.origin.key.startswith(EARLIER)]
    if len(noted) <= 1:  # what an earlier version recorded is of the only upload that carries the id
        return ()
    return tuple(one for one in group if one is not claim)


def _verdict(
    claim: _Claim, group: Sequence[_Claim], rivals: Sequence[_Claim], here: frozenset[str]
) -> Verdict:
    """Whose an upload is.

    Args:
        group: All that have its id.
        rivals: Those that had its id before the list of the class was asked.
    """
    reason = ""
    if claim.weight is _Weight.LMS:
        reason = _held_by_the_lms(claim, [one for one in group if one is not claim], here)
    elif claim.weight is _Weight.NAMES:
        known = [one for one in (*rivals, *group) if one.weight > _Weight.NAMES]
        reason = _held_by_names(claim, known, rivals)
    student_id = claim.origin.listed_as if reason else claim.student_id
    counts = claim.before is None or claim.before.counts or bool(reason)
    return Verdict(claim.origin, student_id, reason, counts, claim.before)


def _held_by_the_lms(claim: _Claim, others: Sequence[_Claim], here: frozenset[str]) -> str:
    """Why it is not known whether an upload counts that by the LMS is a student's; empty when it is."""
    said = [one for one in others if one.weight is _Weight.PERSON]
    if said:
        # a person who said of another one that it is the student's knew of those that were there
        there = claim.before is not None and claim.before.student_id.casefold() == claim.student_id.casefold()
        return "" if there else f"By a person's word it is {_named(said)} that counts for {claim.student_id}."
    rivals = [one for one in others if one.weight is _Weight.LMS and one.origin.key in here]
    if claim.origin.key not in here or not rivals:
        return ""  # a later attempt by another way
    both = _named([claim, *rivals])
    return f"By the LMS {both} are {claim.student_id}'s, and nothing tells which of them counts."


def _held_by_names(claim: _Claim, known: Sequence[_Claim], rivals: Sequence[_Claim]) -> str:
    """Why nobody knows whose an upload is that goes by the names of its files; empty when it is known.

    Args:
        known: Those of which somebody, or the LMS, says that they are that student's.
    """
    carried = f"Its files carry the id {claim.student_id}"
    if claim.refuted:
        return f"{carried}, and by the list of the class that is somebody else."
    if known:
        said = any(one.weight is _Weight.PERSON for one in known)
        return f"{carried}, and by {'a person' if said else 'the LMS'} that is whoever sent {_named(known)}."
    if rivals:
        return f"{carried}, and so do those of {_named(rivals)}. The LMS does not say whose they are."
    before = claim.before
    if before is not None and before.held and before.origin.carries == claim.origin.carries:
        return f"{carried}, and so did those of another upload. The LMS does not say whose they are."
    return ""


def _named(claims: Sequence[_Claim]) -> str:
    """The uploads of claims, by the ids that hold no names."""
    names = sorted({one.origin.listed_as for one in claims})
    return " and ".join(names) if len(names) < 3 else f"{', '.join(names[:-1])} and {names[-1]}"


# --- ids in names ----------------------------------------------------------------------------------------


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
