"""The pages on which people mark: the list of a question, one task, and what can be done with it.

It reads forms and chooses what to show. Whether a mark may be given, what comes next and who holds what are
decided in `grader.marking`.
"""

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from starlette.responses import JSONResponse, Response

from grader.decisions.mark_entries import MarkFault, MarkRefused, points_in
from grader.domain.errors import UsageError
from grader.domain.formatting import stamp
from grader.marking import allocation, presence
from grader.marking.audit_log import add_entry, reveal
from grader.marking.comment_bank import comment_bank
from grader.marking.desk import UnknownTask, assignment_now, one_look
from grader.marking.mark_edits import WouldLower
from grader.marking.mark_saving import (
    ChosenMark,
    Conflict,
    OpenedTask,
    drop_draft,
    keep_draft,
    opened_task,
    save_mark,
    withdraw_mark,
)
from grader.marking.rubric_items import MarkingItem, marking_items
from grader.marking.task_list import (
    MarkedQuestion,
    neighbor,
    next_unmarked,
    questions,
    task_lines,
    tasks_of_submission,
)
from grader.web.access import StaffRole
from grader.web.shown_work import page_picture, pages_with, pdf_of, work_html
from grader.web.visits import Visit

_MOST_KEYS = 10  # rubric items that have a digit
_BY_STUDENT = "student"
_REMOVED = "No longer in the rubric"


# --- questions -------------------------------------------------------------------------------------------


def question_page(visit: Visit) -> Response:
    """The submissions of a question in its order."""
    target, now = visit.path["target"], visit.now()
    with one_look(visit.desk):
        lines = task_lines(visit.desk, target, visit.person, now)
        question = question_of(visit, target)
    return visit.page(
        "question.html.j2",
        question=question,
        lines=lines,
        done=visit.query.text("done"),
        after=visit.query.text("after"),
        skipped=sum(line.skipped for line in lines),
    )


def next_task(visit: Visit) -> Response:
    """The next submission that this person should mark, or the question's list if none is left."""
    target, after = visit.path["target"], visit.query.text("after")
    return _to_next(visit, target, after)


def next_anywhere(visit: Visit) -> Response:
    """The next task in the first question that has one for this person."""
    now = visit.now()
    for question in questions(visit.desk, visit.person):
        if question.mine_left and next_unmarked(visit.desk, question.target, visit.person, now) is not None:
            return visit.redirect("questions", question.target, "next")
    return visit.redirect(done="all")


def unskip(visit: Visit) -> Response:
    """Offer again what this person skipped."""
    target = visit.path["target"]
    allocation.unskip(visit.desk, target, visit.person)
    return visit.redirect("questions", target, "next")


def question_of(visit: Visit, target: str) -> MarkedQuestion:
    """A question with its progress.

    Raises:
        UnknownTask: There is none.
    """
    for question in questions(visit.desk, visit.person, only=target):
        if question.target == target:
            return question
    raise UnknownTask(f"There is no question '{target}'.")


# --- one task --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Entered:
    """What the fields of a task's form hold.

    Attributes:
        points: As typed; empty: by the items.
        note: Where it comes from, for whoever reads it; empty: nothing to say.
        taking_back: Why the mark should be taken back, if that was tried.
    """

    items: frozenset[str] = frozenset()
    points: str = ""
    adjustment: str = ""
    reason: str = ""
    comment: str = ""
    remarks: tuple[str, ...] = ()
    note: str = ""
    taking_back: str = ""


def task_page(visit: Visit) -> Response:
    """One submission and one question, to be marked."""
    target, handle = visit.path["target"], visit.path["handle"]
    others = presence.touch(visit.desk, target, handle, visit.person, visit.now())
    with one_look(visit.desk):
        task = opened_task(visit.desk, target, handle, visit.person)
        known = {item.id for item in _items(visit, task)}
        return _task_page(visit, task, _entered(task, known), others)


def _task_page(
    visit: Visit,
    task: OpenedTask,
    entered: _Entered,
    others: Sequence[presence.Present],
    *,
    status: int = 200,
    faults: tuple[str, ...] = (),
    version: int | None = None,
    conflict: Conflict | None = None,
    would_lower: bool = False,
) -> Response:
    target, handle = task.target, task.handle
    assignment = assignment_now(visit.desk)
    items = _items(visit, task)
    by_student = visit.query.text("by") == _BY_STUDENT
    bank = {remark.id: remark for remark in assignment.remarks}
    own = {item.id for item in items}
    return visit.page(
        "task.html.j2",
        status,
        assignment=assignment,
        question=question_of(visit, target),
        task=task,
        version=task.version if version is None else version,
        entered=entered,
        items=items,
        groups=_groups(items),
        keys={
            item.id: str((index + 1) % 10)
            for index, item in enumerate(items[:_MOST_KEYS])
            if item.group != _REMOVED
        },
        chosen_remarks=[
            (id_, bank[id_].text if id_ in bank else id_) for id_ in entered.remarks if id_ not in own
        ],
        faults=faults,
        conflict=conflict,
        would_lower=would_lower,
        work=work_html(visit.desk, assignment, handle, target),
        bank=comment_bank(visit.desk, target, marker=visit.person, limit=12),
        others=others,
        notes=allocation.notes(visit.desk, handle),
        flags=allocation.flags(visit.desk, target, handle),
        before=neighbor(visit.desk, target, handle, -1),
        after=neighbor(visit.desk, target, handle, 1),
        siblings=tasks_of_submission(visit.desk, handle),
        by=_BY_STUDENT if by_student else "",
        markers=_markers(visit),
    )


def _items(visit: Visit, task: OpenedTask) -> tuple[MarkingItem, ...]:
    """The rubric items of a task: those of the file, then those that its mark alone has still."""
    removed = (replace(item, group=_REMOVED) for item in task.removed)
    return (*marking_items(visit.desk).of(task.target), *removed)


def _groups(items: tuple[MarkingItem, ...]) -> list[tuple[str, list[MarkingItem]]]:
    """The items by their headings, in the order of the file."""
    groups: dict[str, list[MarkingItem]] = {}
    for item in items:
        groups.setdefault(item.group, []).append(item)
    return list(groups.items())


def _markers(visit: Visit) -> list[str]:
    """Those to whom a task can be handed over."""
    names = dict.fromkeys(one.person for one in visit.console.access.people())
    return [name for name in names if name != visit.person]


def _entered(task: OpenedTask, known: Collection[str]) -> _Entered:
    """What the fields hold when the page is opened: the draft, else the mark, else nothing.

    Args:
        known: The rubric items that can be chosen. Where a mark has others, as a second mark may, only its
            points by hand are the same.
    """
    if task.draft is not None:
        note = f"This is your draft of {stamp(task.draft.when)}."
        if task.draft.is_outdated:
            note += " Somebody saved a mark since."
        if task.draft.is_of_other_files:
            note += " It is about earlier files: others of this submission count since."
        return _of_chosen(task.draft.chosen, note)
    mark = task.mark
    if mark is None or mark.points is None:
        return _Entered()
    items = frozenset(item_id for item_id, _ in mark.items)
    others = tuple(remark_id for remark_id, _ in mark.remarks if remark_id not in items)
    by_items = bool(items) and items <= set(known)
    return _Entered(
        items=items,
        points="" if by_items else _typed(mark.points),
        adjustment=_typed(mark.adjustment) if by_items and mark.adjustment else "",
        reason=mark.why if by_items and mark.adjustment else "",
        comment=mark.comment,
        remarks=others,
    )


def _of_chosen(chosen: ChosenMark, note: str = "") -> _Entered:
    return _Entered(
        items=frozenset(chosen.items),
        points="" if chosen.points is None else _typed(chosen.points),
        adjustment=_typed(chosen.adjustment) if chosen.adjustment else "",
        reason=chosen.reason,
        comment=chosen.comment,
        remarks=chosen.remarks,
        note=note,
    )


def _typed(value: float) -> str:
    return f"{value:g}"


def _chosen(visit: Visit) -> tuple[ChosenMark, _Entered, tuple[str, ...]]:
    """What was sent: the mark, the fields as they were typed, and what is wrong with the numbers."""
    form, faults = visit.form, []
    numbers = {}
    for name in ("points", "adjustment"):
        text = form.text(name).strip()
        value = points_in(text)
        if isinstance(value, MarkFault) or (value is not None and not math.isfinite(value)):
            faults.append(
                f"{name.capitalize()}: {value if isinstance(value, MarkFault) else 'not a number.'}"
            )
            value = None
        numbers[name] = value
    items = form.texts("item")
    remarks = tuple(dict.fromkeys(form.texts("remark")))
    comment = form.text("comment").replace("\r\n", "\n").strip()
    chosen = ChosenMark(
        items=items,
        points=numbers["points"],
        adjustment=numbers["adjustment"] or 0.0,
        reason=form.text("reason").strip(),
        comment=comment,
        remarks=remarks,
    )
    entered = _Entered(
        frozenset(items),
        form.text("points"),
        form.text("adjustment"),
        chosen.reason,
        comment,
        remarks,
    )
    return chosen, entered, tuple(faults)


def save(visit: Visit) -> Response:
    """Save a mark and go on; who saves over an unseen mark is shown both."""
    target, handle = visit.path["target"], visit.path["handle"]
    chosen, entered, faults = _chosen(visit)
    drawn_from, now = visit.form.number("version"), visit.now()
    if chosen.points is None and not chosen.items and not chosen.adjustment and not faults:
        faults = ("Choose a rubric item, or type points.",)
    refusal: _Refusal | None = _Refusal(faults)
    if not faults:
        refusal = _refusal(
            visit,
            lambda: save_mark(
                visit.desk,
                target,
                handle,
                chosen,
                visit.person,
                now,
                drawn_from=drawn_from,
                seen=_seen_run(visit),
                allow_lower=_may_lower(visit),
            ),
        )
    if refusal is None:
        return _onward(visit, target, handle)
    conflict = refusal.conflict
    others = presence.touch(visit.desk, target, handle, visit.person, now)
    with one_look(visit.desk):
        return _task_page(
            visit,
            opened_task(visit.desk, target, handle, visit.person),
            entered,
            others,
            status=409 if conflict else 422,
            faults=refusal.faults,
            version=conflict.theirs.version if conflict else drawn_from,
            conflict=conflict,
            would_lower=refusal.would_lower,
        )


@dataclass(frozen=True)
class _Refusal:
    """Why a mark was not changed.

    Attributes:
        faults: Sentences; empty where somebody else saved a mark meanwhile.
        conflict: That mark.
        would_lower: A released grade would fall, and who asks may allow it.
    """

    faults: tuple[str, ...] = ()
    conflict: Conflict | None = None
    would_lower: bool = False


def _seen_run(visit: Visit) -> int | None:
    """The run whose files the page showed; None: an older page did not say it."""
    return visit.form.number("seen") if visit.form.text("seen") else None


def _refusal(visit: Visit, change: Callable[[], object]) -> _Refusal | None:
    """Change a mark; None: it was changed.

    Raises:
        UnknownTask: There is no such task.
    """
    try:
        change()
    except UnknownTask:
        raise
    except Conflict as error:
        return _Refusal(conflict=error)
    except MarkRefused as error:
        return _Refusal(tuple(str(fault) for fault in error.faults))
    except WouldLower as error:
        return _Refusal((str(error),), would_lower=visit.may(StaffRole.HEAD))
    except UsageError as error:
        return _Refusal(tuple(str(error).splitlines()))
    return None


def _onward(visit: Visit, target: str, handle: str) -> Response:
    """Where the form leads to: the next unmarked one, the next part of the same submission, or back here."""
    then = visit.form.text("then")
    if then == "stay":
        return visit.redirect("questions", target, handle, by=visit.query.text("by"))
    if visit.query.text("by") == _BY_STUDENT:
        targets = tasks_of_submission(visit.desk, handle)
        later = targets[targets.index(target) + 1 :] if target in targets else ()
        if later:
            return visit.redirect("questions", later[0], handle, by=_BY_STUDENT)
        return visit.redirect("submissions", handle)
    return _to_next(visit, target, handle)


def _to_next(visit: Visit, target: str, after: str) -> Response:
    handle = next_unmarked(visit.desk, target, visit.person, visit.now(), after=after)
    if handle is None:
        return visit.redirect("questions", target, done="all")
    return visit.redirect("questions", target, handle)


def keep_theirs(visit: Visit) -> Response:
    """After a conflict: leave the other's mark as it is, and drop the own draft."""
    target, handle = visit.path["target"], visit.path["handle"]
    drop_draft(visit.desk, target, handle, visit.person)
    presence.leave(visit.desk, target, handle, visit.person)
    return _onward(visit, target, handle)


def draft(visit: Visit) -> Response:
    """Keep what is typed so far."""
    target, handle = visit.path["target"], visit.path["handle"]
    chosen, _, _ = _chosen(visit)
    now, shown = visit.now(), visit.form.number("version")
    keep_draft(visit.desk, target, handle, chosen, visit.person, now, drawn_from=shown, seen=_seen_run(visit))
    presence.touch(visit.desk, target, handle, visit.person, now)
    return JSONResponse({"kept": f"{now:%H:%M:%S %Z}"})


def discard_draft(visit: Visit) -> Response:
    """Forget the draft, and show the mark as it stands."""
    target, handle = visit.path["target"], visit.path["handle"]
    drop_draft(visit.desk, target, handle, visit.person)
    return visit.redirect("questions", target, handle, by=visit.query.text("by"))


def withdraw(visit: Visit) -> Response:
    """Take a mark back; if that is not possible, the task is shown again with the reason."""
    target, handle, now = visit.path["target"], visit.path["handle"], visit.now()
    refusal = _refusal(
        visit,
        lambda: withdraw_mark(
            visit.desk,
            target,
            handle,
            visit.person,
            now,
            why=visit.form.text("why"),
            drawn_from=visit.form.number("version"),
            allow_lower=_may_lower(visit),
        ),
    )
    if refusal is None:
        return visit.redirect("questions", target, handle, by=visit.query.text("by"))
    faults = refusal.faults
    if refusal.conflict is not None:
        marker = refusal.conflict.theirs.marker
        faults = (f"{marker} saved a mark meanwhile: it is shown here. Nothing was taken back.",)
    others = presence.touch(visit.desk, target, handle, visit.person, now)
    with one_look(visit.desk):
        task = opened_task(visit.desk, target, handle, visit.person)
        entered = _entered(task, {item.id for item in _items(visit, task)})
        entered = replace(entered, taking_back=visit.form.text("why"))
        return _task_page(
            visit, task, entered, others, status=422, faults=faults, would_lower=refusal.would_lower
        )


def _may_lower(visit: Visit) -> bool:
    """Whether a released grade may fall: if the form says so, and it is from somebody who may."""
    return bool(visit.form.text("allow_lower")) and visit.may(StaffRole.HEAD)


def who_is_here(visit: Visit) -> Response:
    """Who has the task open, as a part of its page; asking is no activity."""
    target, handle = visit.path["target"], visit.path["handle"]
    others = presence.present(visit.desk, target, handle, visit.now())
    return visit.page("present.html.j2", others=others)


def bank(visit: Visit) -> Response:
    """The comments of a question that have the searched words, as a part of its page."""
    target = visit.path["target"]
    search = visit.query.text("search")
    found = comment_bank(visit.desk, target, marker=visit.person, search=search, limit=12)
    return visit.page("bank.html.j2", bank=found)


# --- instead of a mark -----------------------------------------------------------------------------------


def skip(visit: Visit) -> Response:
    """Go on without a mark; it is not offered to this person again."""
    target, handle = visit.path["target"], visit.path["handle"]
    allocation.skip(visit.desk, target, handle, visit.person, visit.now())
    presence.leave(visit.desk, target, handle, visit.person)
    return _to_next(visit, target, handle)


def flag(visit: Visit) -> Response:
    """Ask that somebody else looks at it."""
    target, handle = visit.path["target"], visit.path["handle"]
    allocation.flag(visit.desk, target, handle, visit.form.text("text"), visit.person, visit.now())
    return visit.redirect("questions", target, handle, by=visit.query.text("by"))


def unflag(visit: Visit) -> Response:
    """Remove the flags."""
    target, handle = visit.path["target"], visit.path["handle"]
    allocation.unflag(visit.desk, target, handle, visit.person, visit.now())
    return visit.redirect("questions", target, handle, by=visit.query.text("by"))


def hand_over(visit: Visit) -> Response:
    """Give it to somebody else, and go on."""
    target, handle, to = visit.path["target"], visit.path["handle"], visit.form.text("to")
    if to not in _markers(visit):
        raise UsageError("Choose somebody who has a link to this console.")
    allocation.hand_over(
        visit.desk, target, handle, to, visit.person, visit.now(), text=visit.form.text("text")
    )
    presence.leave(visit.desk, target, handle, visit.person)
    return _to_next(visit, target, handle)


def note(visit: Visit) -> Response:
    """Add a note for markers."""
    target, handle = visit.path["target"], visit.path["handle"]
    allocation.add_note(visit.desk, target, handle, visit.form.text("text"), visit.person, visit.now())
    return visit.redirect("questions", target, handle, by=visit.query.text("by"), fragment="notes")


def reveal_owner(visit: Visit) -> Response:
    """Whose it is, once, after that was recorded with its reason."""
    handle = visit.path["handle"]
    people = reveal(visit.desk, handle, visit.person, visit.now(), why=visit.form.text("why"))
    return visit.page("revealed.html.j2", people=people, handle=handle)


# --- one submission --------------------------------------------------------------------------------------


def submission_page(visit: Visit) -> Response:
    """All that is marked of one submission."""
    handle = visit.path["handle"]
    targets = tasks_of_submission(visit.desk, handle)
    tasks = [opened_task(visit.desk, target, handle, visit.person) for target in targets]
    assignment = assignment_now(visit.desk)
    first = tasks[0] if tasks else None
    work = work_html(visit.desk, assignment, handle, first.target if first else "")
    return visit.page(
        "marked_submission.html.j2",
        assignment=assignment,
        handle=handle,
        tasks=tasks,
        work=work,
        notes=allocation.notes(visit.desk, handle),
    )


def picture(visit: Visit) -> Response:
    """A page of the PDF as a picture."""
    content = page_picture(visit.desk, visit.path["handle"], visit.path["number"])
    if content is None:
        raise UnknownTask("There is no such page.")
    return Response(content, media_type="image/webp", headers={"Cache-Control": "private, max-age=3600"})


def search_pdf(visit: Visit) -> Response:
    """The pages of the PDF that have the searched words, as a part of a page."""
    words = visit.query.text("search")
    found = pages_with(visit.desk, visit.path["handle"], words[:200])
    return visit.page("found_pages.html.j2", found=found, words=words.strip())


def pdf(visit: Visit) -> Response:
    """The PDF as it was handed in, to be saved and opened elsewhere; it may show whose it is."""
    handle = visit.path["handle"]
    content = pdf_of(visit.desk, handle)
    if content is None:
        raise UnknownTask("The PDF is not kept here.")
    add_entry(visit.desk, visit.person, visit.now(), "downloaded the PDF as handed in", handle=handle)
    headers = {
        "Content-Disposition": 'attachment; filename="answers.pdf"',
        "Content-Security-Policy": "default-src 'none'; sandbox; frame-ancestors 'none'",
    }
    return Response(content, media_type="application/octet-stream", headers=headers)
