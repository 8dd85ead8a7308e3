"""What is trained, as names and texts: the same words on a terminal and on a page."""

from collections.abc import Iterator, Sequence

from grader.domain.allowed_training import beyond_what_is_allowed
from grader.domain.formatting import counted, listed, quantity, within
from grader.domain.measure import Measure
from grader.domain.plan import Plan, Rehearsal, Stage
from grader.domain.program import Place

MOST_ROWS = 12  # stages that are told one by one
KEPT = "a tenth of the training images is kept for what your code measures, because it decides by that"
WIDENED = f"{KEPT}; once all is decided, they are trained on, too"
NEEDED = "what comes of them decides how the one that counts is made or trained"
SEEDED = "your own seeds are set too, after the grader's"


def plan_rows(plan: Plan, file: str, measure: Measure | None = None) -> list[tuple[str, str]]:
    """The rows, in their order.

    Args:
        file: The submitted file: its name is left out where a line of it is told.
        measure: Of the model, which may say how much is allowed; None: nothing is said of that.
    """
    if measure is not None and measure.call is not None:
        return list(_stage_rows(plan.rehearsal, file)) if plan.rehearsal is not None else []
    if plan.missing:
        return [("trained", f"nothing: {plan.missing}")]
    beyond = beyond_what_is_allowed(measure, plan.rehearsal) if measure is not None else ()
    return [*_rows(plan, file), *(("too much", told) for told in beyond)]


def _rows(plan: Plan, file: str) -> Iterator[tuple[str, str]]:
    yield "trained", f"{plan.model or 'the model that counts'}, as {plan.why}"
    if plan.rehearsal is None:
        if plan.loops:
            yield "loops", _lines(plan.loops, file)
    else:
        yield from _stage_rows(plan.rehearsal, file)
    if plan.validates:
        yield "validation", WIDENED if plan.widens else KEPT
    if plan.seeds:
        yield "seeds", f"{SEEDED} ({_lines(plan.seeds, file)})"
    if plan.left_alone:
        places = [one.place for one in plan.left_alone]
        reasons = dict.fromkeys(one.reason for one in plan.left_alone)
        yield "left alone", f"{_lines(places, file)}: {'; '.join(reasons)}"


def _stage_rows(rehearsal: Rehearsal, file: str) -> Iterator[tuple[str, str]]:
    shown = rehearsal.stages[:MOST_ROWS]
    for number, stage in enumerate(shown, start=1):
        yield f"stage {number}" if len(rehearsal.stages) > 1 else "epochs", stage_text(stage, file)
    if len(rehearsal.stages) > len(shown):
        yield "and", counted(len(rehearsal.stages) - len(shown), "further stage")
    if rehearsal.fault:
        where = f" ({rehearsal.where})" if rehearsal.where else ""
        yield "but", f"{rehearsal.fault}{where}"
    elif rehearsal.epochs is None:
        yield "and more", "the trial takes long, so the rest is not known beforehand"
    elif len(rehearsal.stages) > 1:
        yield "epochs", f"{rehearsal.epochs} in all"
    if rehearsal.multiply_adds:
        yield "size", f"{rehearsal.multiply_adds / 1e6:.1f} million multiply-adds for an image"
    if rehearsal.other_models:
        yield "also trained", f"{counted(rehearsal.other_models, 'other model')}: {NEEDED}"


def stage_text(stage: Stage, file: str) -> str:
    """`3 epochs in the loop at line 41: AdamW, learning rate 0.001 to 0.0001, CosineAnnealingLR`."""
    text = counted(stage.epochs, "epoch")
    if stage.loop is not None:
        text += f" in the loop at {within(stage.loop, file)}"
    if stage.called is not None:
        text += f", called at {within(stage.called, file)}"
    rate = f"{stage.first_rate:.4g}"
    if f"{stage.last_rate:.4g}" != rate:
        rate += f" to {stage.last_rate:.4g}"
    details = [stage.optimizer or "an optimizer", f"learning rate {rate}"]
    if stage.schedule:
        details.append(stage.schedule)
    if stage.per_batch:
        details.append("changed with each batch")
    if stage.learned:
        details.append(f"{quantity(stage.learned)} numbers learn")
    return f"{text}: {', '.join(details)}"


def _lines(places: Sequence[Place], file: str) -> str:
    return listed([within(place, file) for place in dict.fromkeys(places)])
