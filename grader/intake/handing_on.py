"""Hands on what one member of a group handed in, where a file says who works together.

For LMSs that know no teams. Whoever handed in something else keeps that: nothing is guessed, and the note
says so. It never decides whose an upload is (`ownership` does).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from grader.domain.formatting import counted, listed
from grader.domain.term_total import GroupMember
from grader.intake.student_files import StudentFiles


@dataclass(frozen=True)
class HandingOn:
    """What was handed on.

    Attributes:
        any: Whether anything was.
        notes: Sentences about the groups.
    """

    any: bool = False
    notes: tuple[str, ...] = ()


def handed_on_by_groups(
    groups: Mapping[str, Sequence[GroupMember]], senders: Mapping[str, tuple[StudentFiles, str]]
) -> HandingOn:
    """Name the members to whom each submission is handed on, in its `StudentFiles`.

    Args:
        groups: Student -> the members of the student's group.
        senders: Student -> what the student handed in alone, and the digest of it.
    """
    notes: list[str] = []
    for_others, students = 0, 0
    by_name = {members[0].group: members for members in groups.values() if members}
    for members in by_name.values():
        sent = {one.student_id: senders[one.student_id] for one in members if one.student_id in senders}
        without = tuple(sorted(one.student_id for one in members if one.student_id not in senders))
        digests = {digest for _, digest in sent.values()}
        chosen = [one.student_id for one in members if one.hands_in and one.student_id in sent]
        if len(digests) > 1:
            notes.append(_differ(members[0].group, sorted(sent), without, chosen))
        if not without or not sent or (len(digests) > 1 and not chosen):
            continue
        sender = chosen[0] if chosen else min(sent)
        files, _ = sent[sender]
        files.members, files.sender = without, sender
        for_others, students = for_others + 1, students + len(without)
    if for_others:
        notes.insert(
            0,
            f"What one member handed in counts for the group: {counted(for_others, 'submission')} "
            f"for {counted(students, 'further student')}.",
        )
    return HandingOn(bool(for_others), tuple(notes))


def _differ(group: str, sent: Sequence[str], without: Sequence[str], chosen: Sequence[str]) -> str:
    """The sentence on a group whose members handed in different work."""
    said = f"{group}: {listed(list(sent))} handed in different work, and each is graded by itself."
    if not without:
        return said
    if chosen:
        return f"{said} {listed(list(without))}: {chosen[0]}'s counts, as the file of groups says."
    return f"{said} {listed(list(without))} have none: say whose counts by 'hands_in' in the file of groups."
