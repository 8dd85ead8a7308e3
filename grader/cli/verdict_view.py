"""The end of `grader check`: what is known of the grade or of one part, and the verdict in a sentence.

It prints rows of parts, points and trainings, and the verdict on a homework or on a single part of it;
each also as a document for programs. It chooses the words. Points and outcome come from
`grader.students.prospect` and are never computed here.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from grader.cli.terminal_page import Page
from grader.domain.analyzed_program import Omission
from grader.domain.assignment import SUBMISSION, Assignment
from grader.domain.evidence import Finding, Status
from grader.domain.formatting import SPACE, counted, listed, named, points, within
from grader.domain.program_run import Rehearsal
from grader.students.own_check import LocalCheck
from grader.students.prospect import KnownPoints, OpenCheck, Outcome, PlannedTraining, Prospect, prospect


def show_part_verdict(page: Page, found: LocalCheck, assignment: Assignment, part: str) -> Outcome:
    """What hinders the checks of a part, and what they come to, in a sentence.

    Args:
        assignment: With the checks of the part alone.
    """
    hindrances = [
        *(_broken(left) for left in found.program.omissions),
        *(
            f"{named(name)}, which `{graded}` uses, is defined nowhere in the file."
            for graded, name in found.program.unresolved
        ),
    ]
    if hindrances:
        page.heading("Notes")
        for note in hindrances:
            page.item("note", note)
    known = prospect(assignment, found)
    page.verdict(known.outcome is Outcome.RIGHT, part_verdict(found, known, part))
    return known.outcome


def part_document(found: LocalCheck, assignment: Assignment, part: str) -> dict[str, Any]:
    """The same for programs."""
    known = prospect(assignment, found)
    told = part_verdict(found, known, part).replace(SPACE, " ")
    return {"part": part, "exit_code": int(known.outcome), "verdict": told}


def _broken(left: Omission) -> str:
    return f"{left.place}: {left.reason}."


def part_verdict(found: LocalCheck, known: Prospect, part: str) -> str:
    """The findings of a part in a sentence."""
    findings = found.findings
    passed = sum(finding.status is Status.PASSED for finding in findings)
    if passed == len(findings):
        one = passed == 1
        told = (
            f"The public check of `{part}` passes" if one else f"All {passed} public checks of `{part}` pass"
        )
        if known.forbidden:
            return (
                f"{told}, but {listed([named(name) for name in known.forbidden])} is not allowed: see above."
            )
        return f"{told}."
    text = f"{passed} of {counted(len(findings), 'public check')} of `{part}` pass."
    if ours := sum(finding.status is Status.ERRORED for finding in findings):
        text += f" {counted(ours, 'check')} could not be decided, which is not your fault."
    return text


# --- verdict view ----------------------------------------------------------------------------------------


THE_FILE = "the file"  # what a check of no part is about
MOST_OPEN = 12  # checks that are told one by one
NEVER_LEAST = 0.005  # points: less is rounding


def show_verdict(page: Page, found: LocalCheck, assignment: Assignment) -> Outcome:
    """Print what is known and what is decided later, and the verdict."""
    known = prospect(assignment, found)
    page.heading("Where you stand")
    page.pairs([*_part_rows(known), *_point_rows(known.points), *_training_rows(known, found)])
    page.verdict(known.outcome is Outcome.RIGHT, verdict(found, known))
    return known.outcome


def _part_rows(known: Prospect) -> Iterator[tuple[str, str]]:
    if known.done:
        yield "done", _names(known.done)
    if known.not_done:
        yield "not yet", _names(known.not_done)


def _names(names: Sequence[str]) -> str:
    return listed([f"`{name}`" for name in names], limit=20)


def _point_rows(known: KnownPoints) -> Iterator[tuple[str, str]]:
    if known.code:
        yield (
            "sure",
            f"{points(known.sure)} of {points(known.maximum)} points, by the public checks that pass",
        )
    if known.lost >= NEVER_LEAST:
        yield "lost", f"{points(known.lost)} points, as it stands now"
    if known.hidden >= NEVER_LEAST:
        yield "open", _open_text(known)
        yield from (("", f"{check.title.rstrip('.')}: {points(check.points)}") for check in _shown(known))
    if known.trained:
        yield "training", f"{points(known.trained)} points, by what is measured when it is trained"
    if known.people:
        yield "people", f"{points(known.people)} points, by people who read your work"


def _open_text(known: KnownPoints) -> str:
    """What checks decide that are made when it is graded."""
    text = f"{points(known.hidden)} points, decided by checks that are made when it is graded"
    unseen = sum(check.points for check in known.open_checks)
    if not known.open_checks:
        return f"{text}: they look closer at what the checks above look at"
    seen = known.hidden - unseen
    closer = f"{points(seen)} by a closer look at the same as above, " if seen >= NEVER_LEAST else ""
    more = f", the first {MOST_OPEN} here" if len(known.open_checks) > MOST_OPEN else ""
    return f"{text}: {closer}{points(unseen)} by what no check above looks at{more}:"


def _shown(known: KnownPoints) -> tuple[OpenCheck, ...]:
    return known.open_checks[:MOST_OPEN]


def _training_rows(known: Prospect, found: LocalCheck) -> Iterator[tuple[str, str]]:
    for training in known.trainings:
        title = training.measure.title if len(known.trainings) > 1 else ""
        said = training_in_a_line(training, found.program.file)
        yield "trial", f"{title}: {said}" if title else said


def training_in_a_line(training: PlannedTraining, file: str) -> str:
    """What would be trained, and whether a trial of it ran, as a clause."""
    plan, tried = training.plan, training.plan.rehearsal
    if plan.missing:
        return f"the grader would train nothing: {plan.missing}"
    what = f"`{plan.model}`" if plan.model else "the model that counts"
    seen = [stage.loop for stage in tried.stages if stage.loop is not None] if tried is not None else []
    loops = listed([within(place, file) for place in dict.fromkeys(seen or plan.loops)])
    where = f" ({loops})" if loops else ""
    if tried is None:
        return f"{what}{where} was not tried"
    if not tried.fault and not tried.complete and not tried.stages:
        return f"no epoch of {what}{where} came to its end in the time of the trial"
    if tried.fault:
        at = f" ({tried.where})" if tried.where else ""
        return f"training {what} on made-up images does not run{at}"
    told = f"{_epochs(tried)} of {what}{where}"
    if tried.other_models:
        told += f", after {counted(tried.other_models, 'other model')}"
    if len(training.rebuilt) > 1:
        *others, last = [within(place, file) for place in training.rebuilt]
        told += f"; it is built at {listed(others)} and again at {last}: the last one counts"
    for module in training.absent:
        told += f"; {named(module)} is not installed here, so what it does was left out: install it"
    return told


def _epochs(tried: Rehearsal) -> str:
    """`3 epochs`, or how far a trial came that was ended."""
    if tried.epochs is not None:
        return counted(tried.epochs, "epoch")
    return f"the first {counted(sum(stage.epochs for stage in tried.stages), 'epoch')}"


def verdict(found: LocalCheck, known: Prospect) -> str:
    """The findings and what would be trained, in a sentence or two."""
    findings = found.findings
    passed = sum(finding.status is Status.PASSED for finding in findings)
    if passed < len(findings):
        return f"{passed} of {len(findings)} public checks pass.{_first(findings)}"
    told = f"All {passed} public checks pass"
    if known.forbidden:
        names = listed([named(name) for name in known.forbidden])
        return f"{told}, but {names} is not allowed (see above: parts that are not allowed)."
    said = [training_in_a_line(training, found.program.file) for training in known.trainings]
    wrong = [
        text for training, text in zip(known.trainings, said, strict=True) if not training.plan.can_be_trained
    ]
    if wrong:
        return f"{told}, but {'; '.join(wrong)}."
    for training, text in zip(known.trainings, said, strict=True):
        if training.plan.rehearsal is None or not (
            training.plan.rehearsal.complete or training.plan.rehearsal.stages
        ):
            return f"{told}; whether the training runs is not known: {text}.{_later(known.points)}"
    runs = f", and the training runs: {'; '.join(said)}" if said else ""
    return f"{told}{runs}.{_later(known.points)}"


def _first(findings: Sequence[Finding]) -> str:
    """Where to begin."""
    text = ""
    open_ = [finding for finding in findings if finding.status in (Status.FAILED, Status.SKIPPED)]
    if open_:
        first = open_[0].component
        begin = THE_FILE if first == SUBMISSION else f"`{first}`"
        text = f" Begin with {begin}" + (f" ({open_[0].where})." if open_[0].where else ".")
        if first == SUBMISSION and not open_[0].where:
            text = f" Begin with this: {open_[0].message}"
    ours = [finding for finding in findings if finding.status is Status.ERRORED]
    if ours:
        text += f" {counted(len(ours), 'check')} could not be decided, which is not your fault."
    return text


def _later(known: KnownPoints) -> str:
    """What is sure of all points, as a sentence."""
    if not known.code:
        return ""
    rest = known.maximum - known.sure
    if rest < NEVER_LEAST:
        return f" All {points(known.maximum)} points are sure."
    deciding = [
        *(["further checks"] if known.hidden >= NEVER_LEAST else []),
        *(["what is measured"] if known.trained else []),
        *(["people"] if known.people else []),
    ]
    sure = f"{points(known.sure)} of {points(known.maximum)} points are sure"
    return f" {sure}; the others are decided by {listed(deciding)}."


def verdict_document(found: LocalCheck, assignment: Assignment) -> dict[str, Any]:
    """The same for programs."""
    known = prospect(assignment, found)
    shown = known.points
    return {
        "exit_code": int(known.outcome),
        "verdict": verdict(found, known).replace(SPACE, " "),
        "done": list(known.done),
        "not_done": list(known.not_done),
        "points": {
            "maximum": shown.maximum,
            "sure": round(shown.sure, 2),
            "lost": round(shown.lost, 2),
            "open": round(shown.hidden, 2),
            "training": shown.trained,
            "people": shown.people,
        },
        "open_checks": [
            {"component": check.component, "title": check.title, "points": round(check.points, 2)}
            for check in shown.open_checks
        ],
        "training": {
            training.measure.id: training_in_a_line(training, found.program.file).replace(SPACE, " ")
            for training in known.trainings
        },
    }
