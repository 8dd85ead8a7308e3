"""Public checks of what learns: freezing, unfreezing, and the model."""

import pytest
import torch

from grader.kit import Mismatch

DEPTH = 4  # blocks of the given model
BEFORE = {"everything": True, "nothing": False}  # what is trainable before a call
SHOWN = 3  # names of parameters that are told


def trainable_after(student, function, *arguments, before="everything"):
    """(what requires gradients after a call, all names) of a new model."""
    model = student.build("build_model", 4)
    model.call("requires_grad_", BEFORE[before])
    student.call(function, model, *arguments)
    found = student.component(model).parameters
    return {each.name for each in found if each.trainable}, {each.name for each in found}


def begins(names, *beginnings):
    """Those of the names that begin so."""
    return {name for name in names if name.startswith(beginnings)}


def listed(names):
    """The first names, and how many more there are."""
    shown = ", ".join(f"`{name}`" for name in names[:SHOWN])
    return shown if len(names) <= SHOWN else f"{shown} and {len(names) - SHOWN} more"


def require_trainable(found, wanted, call, before, hints, look_for):
    """Check what requires gradients, and tell the names of what wrongly does or does not.

    Args:
        hints: What to try where too much learns, and where too little does.
        look_for: The same for the lines.
    """
    if found == wanted:
        return
    more = found - wanted
    names = sorted(more or wanted - found)
    less = sorted(wanted - found) if more else []
    learned = "everything required gradients" if BEFORE[before] else "nothing required gradients"
    now = f"these {'do, and should not' if more else 'do not, and should'}: {listed(names)}"
    further = f"; these do not, and should: {listed(less)}" if less else ""
    code = f"`{call}`"  # a placeholder with its marks, within which no other begins
    raise Mismatch(
        f"Before {code} {learned}; after it {now}{further}.",
        hint=hints[0] if more else hints[1],
        look_for=look_for[0] if more else look_for[1],
    )


FREEZE_HINTS = ("Freeze everything first, then let the head learn.", "head.requires_grad_(True) at the end.")
FREEZE_LINES = (
    "norm.requires_grad_(True), zeros_like() | register_hook(), requires_grad_(False), requires_grad, for",
    "requires_grad_(False), requires_grad, for",
)


@pytest.mark.component("freeze_backbone")
@pytest.mark.weight(0.25)
def test_freezing_leaves_the_head(student):
    """After freeze_backbone exactly the head learns."""
    found, names = trainable_after(student, "freeze_backbone")
    require_trainable(
        found, begins(names, "head."), "freeze_backbone(model)", "everything", FREEZE_HINTS, FREEZE_LINES
    )


@pytest.mark.component("freeze_backbone")
@pytest.mark.because("freezing_leaves_the_head")
@pytest.mark.weight(0.25)
def test_freezing_lets_a_frozen_head_learn(student):
    """After freeze_backbone exactly the head learns, even if nothing learned before."""
    found, names = trainable_after(student, "freeze_backbone", before="nothing")
    require_trainable(
        found, begins(names, "head."), "freeze_backbone(model)", "nothing", FREEZE_HINTS, FREEZE_LINES
    )


@pytest.mark.component("freeze_backbone")
@pytest.mark.because("freezing_leaves_the_head")
@pytest.mark.weight(0.25)
def test_freezing_touches_nothing_else(student):
    """freeze_backbone leaves the weights and the forward pass: what is unfrozen later learns again."""
    model = student.build("build_model", 4)
    before = model.weights()
    student.call("freeze_backbone", model)
    after = model.weights()
    changed = [name for name in before if name in after and not torch.equal(before[name], after[name])]
    if changed:
        raise Mismatch(
            f"freeze_backbone changes the numbers of `{changed[0]}`.", hint="Set requires_grad alone."
        )
    model.call("requires_grad_", True)
    missing = model.gradients(student.tensor(2, 3, 32, 32), student.tensor(2, 4)).missing
    if missing:
        raise Mismatch(
            f"After freeze_backbone(model) and model.requires_grad_(True), `{missing[0]}` receives no "
            "gradient.",
            hint="Set requires_grad, and leave the model's forward alone.",
            look_for="no_grad() | detach()",
        )


@pytest.mark.component("unfreeze")
@pytest.mark.weight(0.25)
def test_unfreezing_reaches_everything(student):
    """After unfreeze(model) everything learns."""
    for before in BEFORE:
        found, names = trainable_after(student, "unfreeze", before=before)
        hint = "With blocks=None everything learns: model.requires_grad_(True)."
        require_trainable(
            found, names, "unfreeze(model)", before, (hint, hint), ("", "blocks is None | _ or 0")
        )


@pytest.mark.component("unfreeze")
@pytest.mark.weight(0.25)
def test_unfreezing_reaches_the_last_blocks(student):
    """After unfreeze(model, 2) exactly the head, the final norm and the last two blocks learn."""
    for before in BEFORE:
        found, names = trainable_after(student, "unfreeze", 2, before=before)
        wanted = begins(names, "head.", "norm.", f"blocks.{DEPTH - 2}.", f"blocks.{DEPTH - 1}.")
        hints = (
            "Of everything, let head, norm and blocks[len(blocks) - n:], the last n blocks, learn.",
            "Head and final norm learn in any case, and with them the last blocks, not the first ones.",
        )
        require_trainable(found, wanted, "unfreeze(model, 2)", before, hints, ("_[:_], for", "_[:_], for"))


@pytest.mark.component("unfreeze")
@pytest.mark.because("unfreezing_reaches_the_last_blocks")
@pytest.mark.weight(0.25)
def test_unfreezing_with_zero_blocks(student):
    """After unfreeze(model, 0) exactly the head and the final norm learn."""
    for before in BEFORE:
        found, names = trainable_after(student, "unfreeze", 0, before=before)
        hints = ("A list's [-0:] is the whole list: blocks[len(blocks) - n:] is right for 0, too.",) * 2
        wanted = begins(names, "head.", "norm.")
        require_trainable(found, wanted, "unfreeze(model, 0)", before, hints, ("_[-_:], for", "for"))


@pytest.mark.component("build_model")
@pytest.mark.weight(0.25)
def test_model_begins_with_its_weights(student):
    """build_model gives a head for its classes, and the same pretrained weights each time."""
    one, other = student.build("build_model", 7).weights(), student.build("build_model", 7).weights()
    hint = "Leave build_model as handout.py has it."
    if "head.weight" in one and len(one["head.weight"]) != 7:
        raise Mismatch(
            f"build_model(7) has a head for {len(one['head.weight'])} classes.",
            hint=hint,
            look_for="VisionTransformer()",
        )
    drawn = [
        name
        for name, held in one.items()
        if "head" not in name and (name not in other or not torch.equal(held, other[name]))
    ]
    if not drawn and "norm.weight" in one and bool((one["norm.weight"] == 1).all()):
        raise Mismatch(
            "All weights of the final norm are 1, as in a model that was never trained: the pretrained "
            "weights are not loaded.",
            hint=hint,
            look_for="VisionTransformer()",
        )
    if drawn:
        raise Mismatch(
            f"Two models of build_model differ in `{drawn[0]}`: it is drawn anew, and not pretrained.",
            hint=hint,
            look_for="VisionTransformer()",
        )
