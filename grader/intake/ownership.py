"""Decides whose each upload is: by a person's decision, by the LMS, or by the names of files.

What the LMS knows (its metadata, its class list with the number that the download has) outranks the ids in
the names of files and folders, which students choose. An upload is said to carry these ids, and they are
read here, too. If several uploads carry one id and the LMS says nothing about them, none gets the id: a
person decides whose each is. The order of the uploads never decides anything.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

from grader.domain.assignment import Assignment
from grader.domain.submission import Origin, RecordedUpload
from grader.files.file_names import plain, sanitized
from grader.intake.naming import Closeness, is_alike, name_match, own_match
from grader.intake.student_files import StudentFiles
from grader.lms import LMSS
from grader.lms.roster import Directory

_LABELS = {one.name: one.anonymous_label for one in LMSS if one.anonymous_label}
# provisional ids, under which uploads are listed while nobody knows whose they are: no student can have one
_PROVISIONAL = re.compile(
    "|".join(
        [
            rf"(?:upload|{'|'.join(one.name.lower() for one in LMSS)})-.+",
            *(label.pattern for label in _LABELS.values()),
        ]
    ),
    re.IGNORECASE,
)
_LONGEST = 40  # letters of an upload's name in such an id
# the prefix of keys for results of early versions of the grader, which did not record the uploads
EARLIER = "earlier:"


@dataclass(frozen=True)
class Verdict:
    """The verdict on whose an upload is.

    Attributes:
        origin: With what the LMS says about it.
        student_id: The id that it gets.
        held_because: Why nobody knows whose it is, in a sentence without names of people; empty otherwise.
        counts: Whether it is the one that counts for that id.
        before: The upload as the gradebook knows it.
    """

    origin: Origin
    student_id: str
    held_because: str = ""
    counts: bool = True
    before: RecordedUpload | None = None


def is_provisional(student_id: str) -> bool:
    """Whether an id is provisional: uploads are listed under it while nobody knows whose they are."""
    return _PROVISIONAL.fullmatch(student_id) is not None


def are_of_one_kind(student_id: str, other: str) -> bool:
    """Whether two ids may be of one kind: numbers of the same length, or not numbers."""
    if student_id.isdecimal() or other.isdecimal():
        return student_id.isdecimal() and other.isdecimal() and len(student_id) == len(other)
    return True


def provisional_id(key: str, lms: str, number: str, upload: str) -> str:
    """The id under which an upload is listed while nobody knows whose it is.

    Args:
        key: The same for the same upload in another download.
        lms: Empty if the upload does not come from an LMS.
        number: The LMS's own number of whoever handed it in, if the download has it.
        upload: Its name in the download.
    """
    by_number = f"{lms.lower()}-{number}"
    if lms and number and by_number == sanitized(by_number):
        return by_number
    if lms in _LABELS and is_provisional(upload):
        return upload
    digest = hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()[:8]
    return f"upload-{sanitized(upload)[:_LONGEST].strip('_-')}-{digest}"


def verdicts(
    uploads: Mapping[str, tuple[Origin, str]],
    directory: Directory,
    recorded_uploads: Sequence[RecordedUpload] = (),
) -> dict[str, Verdict]:
    """Whose each upload is, by its key, for the uploads of this download and those in the gradebook.

    Args:
        uploads: Key -> the upload in this download, and the digest of its files.
        directory: What the LMS's class list says.
        recorded_uploads: The uploads that the gradebook has results of.
    """
    before = _recorded_by_key(uploads, recorded_uploads)
    if _is_of_another_kind(directory, (origin for origin, _ in uploads.values())):
        directory = directory.with_unsure_ids()
    claims = [_claim(origin, directory, before.get(key)) for key, (origin, _) in uploads.items()]
    claims += [
        _claim(recorded.origin, directory, recorded) for key, recorded in before.items() if key not in uploads
    ]
    rivals = {claim.origin.key: _rivals(claim, group) for group in _by_id(claims) for claim in group}
    # if the list assigns an upload to another student, the ids in others' file names do not matter
    claims = [
        claim.by_the_list()
        if claim.id_by_list and (rivals[claim.origin.key] or claim.contradicted)
        else claim
        for claim in claims
    ]
    keys = frozenset(uploads)
    return {
        claim.origin.key: _verdict(claim, group, rivals[claim.origin.key], keys)
        for group in _by_id(claims)
        for claim in group
    }


def _is_of_another_kind(directory: Directory, origins: Iterable[Origin]) -> bool:
    """Whether the numbers in the class list are of another kind than the ids in file names.

    They are if no upload carries its number from the list, and most carry an id of another kind.
    """
    pairs = [
        (listed.student_id, origin.carries)
        for origin in origins
        if origin.carries and (listed := directory.of(origin)) is not None and listed.sure
    ]
    if any(listed_id.casefold() == found_id.casefold() for listed_id, found_id in pairs):
        return False
    return 2 * sum(are_of_one_kind(listed_id, found_id) for listed_id, found_id in pairs) < len(pairs)


class _Weight(IntEnum):
    """The source that says whose an upload is; larger outranks smaller."""

    NOTHING = 0
    NAMES = 1
    LMS = 2
    PERSON = 3


@dataclass(frozen=True)
class _Claim:
    """Whose an upload is, judged by itself.

    Attributes:
        id_by_list: For a claim by names: the id of whoever handed it in, according to the LMS's list.
        contradicted: Whether the list gives the id in its names to another student.
    """

    origin: Origin
    student_id: str
    weight: _Weight
    id_by_list: str = ""
    contradicted: bool = False
    before: RecordedUpload | None = None

    def by_the_list(self) -> "_Claim":
        """The same upload, claimed by what the list knows about whoever handed it in."""
        origin = replace(self.origin, known_id=self.id_by_list)
        return _Claim(origin, self.id_by_list, _Weight.LMS, before=self.before)


def _recorded_by_key(
    uploads: Mapping[str, tuple[Origin, str]], recorded_uploads: Sequence[RecordedUpload]
) -> dict[str, RecordedUpload]:
    """The known uploads by their keys in this download; a repacked one is recognized by its files."""
    recorded_by_key = {recorded.origin.key: recorded for recorded in recorded_uploads}
    # what is handed on has the key of the sender's, and the member's id: it goes where the sender's goes
    new = {
        key: digest
        for key, (_, digest) in uploads.items()
        if digest and key not in recorded_by_key and key.rpartition(":")[0] not in uploads
    }
    absent: dict[str, list[RecordedUpload]] = {}
    for key, recorded in recorded_by_key.items():
        if key not in uploads and key.rpartition(":")[0] not in recorded_by_key:
            absent.setdefault(recorded.digest, []).append(recorded)
    counts = Counter(new.values())
    for key, digest in new.items():
        if counts[digest] > 1:
            continue
        origin, _ = uploads[key]
        same = [one for one in absent.get(digest, ()) if not _are_two_people(one.origin, origin)]
        if len(same) != 1:
            continue
        [recorded] = same
        if recorded.decided or recorded.origin.known_id:
            continue  # what was decided about an upload holds for that one only
        del recorded_by_key[recorded.origin.key]
        recorded_by_key[key] = recorded
    return recorded_by_key


def _are_two_people(origin: Origin, other: Origin) -> bool:
    """Whether two uploads are two people's by the LMS, or where it says nothing, by the ids that they have.

    The same files tell nothing then: one may have copied them, or both handed in the template.
    """
    if origin.number and other.number:
        return (origin.lms, origin.number) != (other.lms, other.number)
    ids, others = (
        {one.casefold() for one in (which.known_id, which.carries) if one} for which in (origin, other)
    )
    if not ids.isdisjoint(others):
        return False
    if origin.number or other.number:
        return True  # of one, the LMS says who handed it in, and nothing says so of the other
    return any(are_of_one_kind(one, other_id) for one in ids for other_id in others)


def _claim(origin: Origin, directory: Directory, before: RecordedUpload | None) -> _Claim:
    listed = directory.of(origin)
    if before is not None:  # what was known when it was graded still holds: a list need not be given twice
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
    id_by_list = (listed.student_id or origin.listed_as) if listed is not None else ""
    return _Claim(
        origin,
        origin.carries,
        _Weight.NAMES,
        id_by_list,
        contradicted=directory.contradicts(origin),
        before=before,
    )


def _by_id(claims: Iterable[_Claim]) -> Iterable[Sequence[_Claim]]:
    groups: dict[str, list[_Claim]] = {}
    for claim in claims:
        groups.setdefault(claim.student_id.casefold(), []).append(claim)
    return groups.values()


def _rivals(claim: _Claim, group: Sequence[_Claim]) -> tuple[_Claim, ...]:
    """The other uploads with the id of one that goes by names; none if something else says whose it is."""
    if claim.weight is not _Weight.NAMES:
        return ()
    noted = [rival for rival in group if not rival.origin.key.startswith(EARLIER)]
    if len(noted) <= 1:  # an earlier version's result belongs to the only upload that carries the id
        return ()
    return tuple(rival for rival in group if rival is not claim)


def _verdict(
    claim: _Claim, group: Sequence[_Claim], rivals: Sequence[_Claim], here: frozenset[str]
) -> Verdict:
    """The verdict on an upload.

    Args:
        group: All claims with its id.
        rivals: Those that had its id before the class list was consulted.
    """
    reason = ""
    if claim.weight is _Weight.LMS:
        reason = _held_by_the_lms(claim, [other for other in group if other is not claim], here)
    elif claim.weight is _Weight.NAMES:
        known_owners = [other for other in (*rivals, *group) if other.weight > _Weight.NAMES]
        reason = _held_by_names(claim, known_owners, rivals)
    student_id = claim.origin.listed_as if reason else claim.student_id
    counts = claim.before is None or claim.before.counts or bool(reason)
    return Verdict(claim.origin, student_id, reason, counts, claim.before)


def _held_by_the_lms(claim: _Claim, others: Sequence[_Claim], here: frozenset[str]) -> str:
    """Why it is unknown whether an upload counts that is a student's by the LMS; empty if it is known."""
    said = [other for other in others if other.weight is _Weight.PERSON]
    if said:
        # a person who assigned another upload to the student knew the ones that existed then
        was_there = (
            claim.before is not None and claim.before.student_id.casefold() == claim.student_id.casefold()
        )
        return "" if was_there else f"A person said that {_ids_of(said)} counts for {claim.student_id}."
    rivals = [other for other in others if other.weight is _Weight.LMS and other.origin.key in here]
    if claim.origin.key not in here or not rivals:
        return ""  # they are not in one download: one of them is a later attempt
    both = _ids_of([claim, *rivals])
    return f"According to the LMS, {both} are {claim.student_id}'s, and nothing shows which of them counts."


def _held_by_names(claim: _Claim, known: Sequence[_Claim], rivals: Sequence[_Claim]) -> str:
    """Why it is unknown whose an upload is that goes by the names of its files; empty if it is known.

    Args:
        known: The uploads that a person or the LMS assigns to that student.
    """
    carried = f"Its files carry the id {claim.student_id}"
    if claim.contradicted:
        return f"{carried}, and according to the class list that is somebody else."
    if known:
        said = any(owner.weight is _Weight.PERSON for owner in known)
        return (
            f"{carried}, and according to {'a person' if said else 'the LMS'} "
            f"that is whoever sent {_ids_of(known)}."
        )
    if rivals:
        return f"{carried}, and so do those of {_ids_of(rivals)}. The LMS does not say whose they are."
    before = claim.before
    if before is not None and before.held and before.origin.carries == claim.origin.carries:
        return f"{carried}, and so did those of another upload. The LMS does not say whose they are."
    return ""


def _ids_of(claims: Sequence[_Claim]) -> str:
    """The uploads of claims, by their ids, which hold no names."""
    names = sorted({claim.origin.listed_as for claim in claims})
    return " and ".join(names) if len(names) < 3 else f"{', '.join(names[:-1])} and {names[-1]}"


# --- ids in names ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class IdInNames:
    """The ids in the names of an upload.

    Attributes:
        student_id: Sanitized, as in lists of results; empty if there is none, or if several are equally good.
        closeness: How well the names with this id fit.
        several: All ids in names that fit exactly or nearly, sorted.
    """

    student_id: str = ""
    closeness: Closeness = Closeness.NONE
    several: tuple[str, ...] = ()


def ids_in_names(files_of_students: Sequence[StudentFiles], assignment: Assignment) -> list[IdInNames]:
    """The ids in the names of each upload of a class.

    An id that several uploads share is ignored if it is a word (`StudentID`), or a number (a date, a size)
    of another length than the ids in names that fit. This applies only if the LMS says who handed them in.

    Args:
        files_of_students: The files of each upload.
        assignment: Says how files are to be named.
    """
    found_ids = [_id_in_names(student_files, assignment) for student_files in files_of_students]
    lengths = {
        len(found_id.student_id)
        for found_id in found_ids
        if found_id.student_id and found_id.closeness <= Closeness.NEARLY
    }
    counts = Counter(found_id.student_id.casefold() for found_id in found_ids)

    def is_no_id(found_id: IdInNames) -> bool:
        is_word = not any(letter.isdigit() for letter in found_id.student_id)
        is_other = (
            found_id.closeness is Closeness.ID_ONLY and lengths and len(found_id.student_id) not in lengths
        )
        return counts[found_id.student_id.casefold()] > 1 and bool(is_word or is_other)

    return [
        replace(found_id, student_id="", closeness=Closeness.NONE)
        if student_files.number and is_no_id(found_id)
        else found_id
        for student_files, found_id in zip(files_of_students, found_ids, strict=True)
    ]


def _id_in_names(student_files: StudentFiles, assignment: Assignment) -> IdInNames:
    matches = [own_match(file.name, assignment) for file in student_files.files]
    several = tuple(
        sorted({m.student_id for m in matches if m.student_id and m.closeness <= Closeness.NEARLY})
    )
    for closeness in (Closeness.EXACT, Closeness.NEARLY, Closeness.ID_ONLY):
        ids = _spellings(m.student_id for m in matches if m.student_id and m.closeness is closeness)
        if not ids:
            continue
        # whoever gave the folder a name like an id knew whose it is
        label_counts = not student_files.lms and any(
            is_alike(student_files.label, spellings) for spellings in ids
        )
        if student_files.label.casefold() in ids or label_counts:
            return _unless_provisional(student_files.label, closeness, several)
        most_spellings = max(map(len, ids.values()))
        chosen = [min(spellings) for spellings in ids.values() if len(spellings) == most_spellings]
        return (
            _unless_provisional(chosen[0], closeness, several)
            if len(chosen) == 1
            else IdInNames(several=several)
        )
    if student_files.lms:
        return IdInNames()
    label = name_match(plain(student_files.label), assignment.file_stem)
    return _unless_provisional(label.student_id or student_files.label, label.closeness, several)


def _unless_provisional(student_id: str, closeness: Closeness, several: tuple[str, ...]) -> IdInNames:
    """The id, unless it is provisional."""
    student_id_shown = sanitized(student_id)
    return (
        IdInNames(several=several)
        if is_provisional(student_id_shown)
        else IdInNames(student_id_shown, closeness, several)
    )


def _spellings(ids: Iterable[str]) -> dict[str, list[str]]:
    """Id, normalized for comparison -> its spellings, one for each name."""
    spellings: dict[str, list[str]] = {}
    for student_id in ids:
        spellings.setdefault(student_id.casefold(), []).append(student_id)
    return spellings
