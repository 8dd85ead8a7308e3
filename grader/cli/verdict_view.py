"""The end of `grader check`: what is known about the grade or one part, and the verdict in a sentence.

It prints rows of parts, points and trainings, and the verdict on a homework or on a single part of it. It
also makes a document of each for programs. It chooses the words. Points and outcome come from
`grader.students.prospect` and are never computed here.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from grader.cli.terminal_page import Page
from grader.domain.analyzed_program import Omission, Program
from grader.domain.assignment import SUBMISSION, Assignment
from grader.domain.evidence import Finding, Status
from grader.domain.formatting import SPACE, counted, listed, named, points, within
from grader.domain.program_run import Rehearsal
from grader.students.own_check import LocalCheck
from grader.students.prospect import KnownPoints, OpenCheck, Outcome, PlannedTraining, Prospect, prospect


def show_part_verdict(page: Page, check: LocalCheck, assignment: Assignment, part: str) -> Outcome:
    """Print what hinders the checks of a part, and the verdict on them in a sentence.

    Args:
        assignment: With the checks of the part alone.
    """
    hindrances = [
        *(_broken_statement(omission) for omission in check.program.omissions),
        *unresolved_notes(check.program),
    ]
    if hindrances:
        page.heading("Notes")
        for note in hindrances:
            page.item("note", note)
    outlook = prospect(assignment, check)
    page.verdict(outlook.outcome is Outcome.RIGHT, part_verdict(check, outlook, part))
    return outlook.outcome


def unresolved_notes(program: Program) -> Iterator[str]:
    """A sentence for each name that a graded part uses and that is not there when it is checked."""
    for graded, name in program.unresolved:
        bound = program.unexecuted(name)
        if bound is None:
            yield f"{named(name)}, which `{graded}` uses, is defined nowhere in the file."
        else:
            place, reason = bound
            yield (
                f"{named(name)}, which `{graded}` uses, is bound at {place}, which the checks do not "
                f"execute: {reason}."
            )


def part_document(check: LocalCheck, assignment: Assignment, part: str) -> dict[str, Any]:
    """The same for programs."""
    outlook = prospect(assignment, check)
    sentence = part_verdict(check, outlook, part).replace(SPACE, " ")
    return {"part": part, "exit_code": int(outlook.outcome), "verdict": sentence}


def _broken_statement(omission: Omission) -> str:
    return f"{omission.place}: {omission.reason}."


def part_verdict(check: LocalCheck, outlook: Prospect, part: str) -> str:
    """The findings of a part in a sentence."""
    findings = check.findings
    passed = sum(finding.status is Status.PASSED for finding in findings)
    if passed == len(findings):
        is_single = passed == 1
        all_pass = (
            f"The public check of `{part}` passes"
            if is_single
            else f"All {passed} public checks of `{part}` pass"
        )
        if outlook.forbidden:
            names = listed([named(name) for name in outlook.forbidden])
            return f"{all_pass}, but {names} is not allowed: see above."
        return f"{all_pass}."
    text = f"{passed} of {counted(len(findings), 'public check')} of `{part}` pass."
    if ours := sum(finding.status is Status.ERRORED for finding in findings):
        text += f" {counted(ours, 'check')} could not be decided, which is not your fault."
    return text


# --- verdict view ----------------------------------------------------------------------------------------


THE_FILE = "the file"  # what a check is about that does not belong to a part
MOST_OPEN = 12  # checks that are listed one by one
NEVER_LEAST = 0.005  # points; less is a rounding error


def show_verdict(page: Page, check: LocalCheck, assignment: Assignment) -> Outcome:
    """Print what is known and what is decided later, and the verdict."""
    outlook = prospect(assignment, check)
    page.heading("Where you stand")
    page.pairs([*_part_rows(outlook), *_point_rows(outlook.points), *_training_rows(outlook, check)])
    page.verdict(outlook.outcome is Outcome.RIGHT, verdict(check, outlook))
    return outlook.outcome


def _part_rows(outlook: Prospect) -> Iterator[tuple[str, str]]:
    if outlook.done:
        yield "done", _listed_parts(outlook.done)
    if outlook.not_done:
        yield "not yet", _listed_parts(outlook.not_done)


def _listed_parts(names: Sequence[str]) -> str:
    return listed([f"`{name}`" for name in names], limit=20)


def _point_rows(split: KnownPoints) -> Iterator[tuple[str, str]]:
    if split.code:
        yield (
            "sure",
            f"{points(split.sure)} of {points(split.maximum)} points, by the public checks that pass",
        )
    if split.lost >= NEVER_LEAST:
        if split.hidden >= NEVER_LEAST:
            least, more = "at least ", "; more of the same parts is decided below"
        else:
            least, more = "", ""
        yield "lost", f"{least}{points(split.lost)} points, as it stands now{more}"
    if split.undecided >= NEVER_LEAST:
        yield (
            "undecided",
            f"{points(split.undecided)} points, by public checks that could not be decided here",
        )
    if split.hidden >= NEVER_LEAST:
        yield "open", _open_text(split)
        yield from (
            ("", f"{check.title.rstrip('.')}: {points(check.points)}") for check in _listed_checks(split)
        )
    if split.trained:
        yield "training", f"{points(split.trained)} points, by what is measured when it is trained"
    if split.people:
        yield "people", f"{points(split.people)} points, by people who read your work"


def _open_text(split: KnownPoints) -> str:
    """The points decided by checks that are made only during grading."""
    text = f"{points(split.hidden)} points, decided by checks that are made when it is graded"
    unseen = sum(check.points for check in split.open_checks)
    if not split.open_checks:
        return f"{text}: they look closer at what the checks above look at"
    closer_points = split.hidden - unseen
    closer = (
        f"{points(closer_points)} by a closer look at the same as above, "
        if closer_points >= NEVER_LEAST
        else ""
    )
    limit_text = f", the first {MOST_OPEN} here" if len(split.open_checks) > MOST_OPEN else ""
    return f"{text}: {closer}{points(unseen)} by what no check above looks at{limit_text}:"


def _listed_checks(split: KnownPoints) -> tuple[OpenCheck, ...]:
    return split.open_checks[:MOST_OPEN]


def _training_rows(outlook: Prospect, check: LocalCheck) -> Iterator[tuple[str, str]]:
    for training in outlook.trainings:
        title = training.measure.title if len(outlook.trainings) > 1 else ""
        clause = training_in_a_line(training, check.program.file)
        yield "trial", f"{title}: {clause}" if title else clause


def training_in_a_line(training: PlannedTraining, file: str) -> str:
    """What would be trained, and whether a trial of it ran, as a clause."""
    plan, tried = training.plan, training.plan.rehearsal
    if plan.missing:
        return f"the grader would train nothing: {plan.missing}"
    what = f"`{plan.model}`" if plan.model else "the model that counts"
    trained_loops = (
        [stage.loop for stage in tried.stages if stage.loop is not None] if tried is not None else []
    )
    loops = listed([within(place, file) for place in dict.fromkeys(trained_loops or plan.loops)])
    where = f" ({loops})" if loops else ""
    if tried is None:
        if training.waits_for:
            runs = "does not run" if len(training.waits_for) == 1 else "do not run"
            names = listed([f"`{name}`" for name in training.waits_for], limit=3)
            return f"{what}{where} was not tried, since {names} {runs} through yet"
        return f"{what}{where} was not tried"
    if not tried.fault and not tried.complete and not tried.stages:
        return f"no epoch of {what}{where} finished within the time of the trial"
    if tried.fault:
        where_text = f" ({tried.where})" if tried.where else ""
        return f"training {what} on made-up images does not run{where_text}"
    clause = f"{_epoch_count(tried)} of {what}{where}"
    if tried.other_models:
        clause += f", after {counted(tried.other_models, 'other model')}"
    if len(training.rebuilt) > 1:
        *earlier, last = [within(place, file) for place in training.rebuilt]
        clause += f"; it is built at {listed(earlier)} and again at {last}: the last one counts"
    for module in training.absent:
        clause += f"; {named(module)} is not installed here, so what it does was left out: install it"
    return clause


def _epoch_count(tried: Rehearsal) -> str:
    """`3 epochs`, or how far a trial came before it was ended."""
    if tried.epochs is not None:
        return counted(tried.epochs, "epoch")
    return f"the first {counted(sum(stage.epochs for stage in tried.stages), 'epoch')}"


def verdict(check: LocalCheck, outlook: Prospect) -> str:
    """The findings, and what would be trained, in a sentence or two."""
    findings = check.findings
    passed = sum(finding.status is Status.PASSED for finding in findings)
    if passed < len(findings):
        return f"{passed} of {len(findings)} public checks pass.{_where_to_begin(findings)}"
    all_pass = f"All {passed} public checks pass"
    if outlook.forbidden:
        names = listed([named(name) for name in outlook.forbidden])
        return f"{all_pass}, but {names} is not allowed (see above: parts that are not allowed)."
    clauses = [training_in_a_line(training, check.program.file) for training in outlook.trainings]
    wrong = [
        text
        for training, text in zip(outlook.trainings, clauses, strict=True)
        if not training.plan.can_be_trained
    ]
    if wrong:
        return f"{all_pass}, but {'; '.join(wrong)}."
    for training, text in zip(outlook.trainings, clauses, strict=True):
        if training.plan.rehearsal is None or not (
            training.plan.rehearsal.complete or training.plan.rehearsal.stages
        ):
            return (
                f"{all_pass}; whether the training runs is not known: {text}.{_sure_points(outlook.points)}"
            )
    runs = f", and the training runs: {'; '.join(clauses)}" if clauses else ""
    return f"{all_pass}{runs}.{_sure_points(outlook.points)}"


def _where_to_begin(findings: Sequence[Finding]) -> str:
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


def _sure_points(split: KnownPoints) -> str:
    """How many of all points are sure, as a sentence."""
    if not split.code:
        return ""
    undecided = split.maximum - split.sure
    if undecided < NEVER_LEAST:
        return f" All {points(split.maximum)} points are sure."
    deciding = [
        *(["further checks"] if split.hidden >= NEVER_LEAST else []),
        *(["what is measured"] if split.trained else []),
        *(["people"] if split.people else []),
    ]
    sure = f"{points(split.sure)} of {points(split.maximum)} points are sure"
    return f" {sure}; the others are decided by {listed(deciding)}."


def verdict_document(check: LocalCheck, assignment: Assignment) -> dict[str, Any]:
    """The same for programs."""
    outlook = prospect(assignment, check)
    shown = outlook.points
    return {
        "exit_code": int(outlook.outcome),
        "verdict": verdict(check, outlook).replace(SPACE, " "),
        "done": list(outlook.done),
        "not_done": list(outlook.not_done),
        "points": {
            "maximum": shown.maximum,
            "sure": round(shown.sure, 2),
            "lost": round(shown.lost, 2),
            "undecided": round(shown.undecided, 2),
            "open": round(shown.hidden, 2),
            "training": shown.trained,
            "people": shown.people,
        },
        "open_checks": [
            {"component": hidden.component, "title": hidden.title, "points": round(hidden.points, 2)}
            for hidden in shown.open_checks
        ],
        "training": {
            training.measure.id: training_in_a_line(training, check.program.file).replace(SPACE, " ")
            for training in outlook.trainings
        },
    }
