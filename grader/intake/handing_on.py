"""Hands on what one member of a group handed in, where a file says who works together.

For LMSs that know no teams. Whoever handed in something else keeps that, also if another download had it:
nothing is guessed, and the note says so. It never decides whose an upload is (`ownership` does).
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from grader.course.known_ids import KnownIds
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
    groups: Mapping[str, Sequence[GroupMember]],
    senders: Mapping[str, tuple[StudentFiles, str]],
    with_own: Collection[str] = (),
    carried: Collection[str] = (),
) -> HandingOn:
    """Name the members to whom each submission is handed on, in its `StudentFiles`.

    Args:
        groups: Student -> the members of the student's group.
        senders: Student -> what the student handed in alone, and the digest of its contents.
        with_own: Students with a submission of their own, also one of an earlier download.
        carried: The ids that submissions carry of which nobody knows whose they are.
    """
    notes: list[str] = []
    for_others, students = 0, 0
    by_name = _as_listed(groups, {*senders, *with_own, *carried})
    for group, members in by_name.items():
        sent = {one.student_id: senders[one.student_id] for one in members if one.student_id in senders}
        others = sorted(one.student_id for one in members if one.student_id not in senders)
        own = [one for one in others if one in with_own]
        unclear = [one for one in others if one in carried and one not in with_own]
        without = tuple(one for one in others if one not in (*own, *unclear))
        are_different = len({digest for _, digest in sent.values()}) > 1
        chosen = [one.student_id for one in members if one.hands_in and one.student_id in (*sent, *own)]
        if are_different:
            notes.append(_differ(group, sorted(sent), without, chosen))
        if not sent:
            continue
        if unclear:
            notes.append(_unclear(group, unclear))
        if own and not are_different:
            notes.append(_kept(group, own, without, chosen))
        sender = chosen[0] if chosen else min(sent)
        if not without or sender not in sent or ((are_different or own) and not chosen):
            continue
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


def _as_listed(
    groups: Mapping[str, Sequence[GroupMember]], known: Collection[str]
) -> dict[str, list[GroupMember]]:
    """Group -> its members, by the ids under which their submissions are listed."""
    ids = KnownIds(known).of_table(groups)
    return {
        members[0].group: [replace(member, student_id=ids[member.student_id]) for member in members]
        for members in groups.values()
        if members
    }


def _differ(group: str, sent: Sequence[str], without: Sequence[str], chosen: Sequence[str]) -> str:
    """The sentence on a group whose members handed in different work."""
    said = f"{group}: {listed(list(sent))} handed in different work, and each is graded by itself."
    if not without:
        return said
    if chosen:
        return f"{said} {listed(list(without))}: {chosen[0]}'s counts, as the file of groups says."
    return f"{said} {listed(list(without))} have none: say whose counts by 'hands_in' in the file of groups."


def _kept(group: str, own: Sequence[str], without: Sequence[str], chosen: Sequence[str]) -> str:
    """The sentence on a group of which some members have a submission that is not in this download."""
    said = f"{group}: what {listed(list(own))} handed in by themselves stays theirs."
    if not without:
        return said
    if chosen:
        return f"{said} {listed(list(without))}: {chosen[0]}'s counts, as the file of groups says."
    return f"{said} For {listed(list(without))}, say whose counts by 'hands_in' in the file of groups."


def _unclear(group: str, unclear: Sequence[str]) -> str:
    """The sentence on a group of which a member may have handed in something else."""
    return (
        f"{group}: nothing is handed on to {listed(list(unclear))}, whose id a submission carries of which "
        "nobody knows whose it is."
    )
