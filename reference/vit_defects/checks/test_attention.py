"""Attention, alone: proved by an oracle that runs on the student's own weights."""

import pytest
import torch
from torch.nn import functional as F

from grader.kit import Cause, Mismatch, Undecided, at_rest, named, same, with_effect
from grader.kit.transformers import (
    UnreadableWeights,
    attention,
    oddities,
    readings,
    squeezed,
    without_biases,
)

pytestmark = pytest.mark.component("Attention")

# distinct sizes, so that the shapes of weights tell what they are
DIM, HEADS, DIM_HEAD, TOKENS = 22, 5, 3, 6
SIZES = ((HEADS, DIM_HEAD), (2, 7))
WIDE, USUAL_HEADS, USUAL_DIM_HEAD, MANY_TOKENS = 48, 4, 20, 50  # as in a training
# recognized by shapes, or by several calls: what one call of them gives proves nothing
NOT_BY_OUTPUT = (
    *("heads_not_projected", "heads_averaged", "first_query_only", "dim_head_ignored"),
    *("attention_is_random", "attention_keeps_state", "attention_layers_in_forward"),
    *("head_sizes_swapped", "heads_lost"),
)
WEIGHTS_OF_ITS_OWN = (
    "Attention is right, except that a part of its own has weights besides the projections; the handout asks "
    "for none."
)


@pytest.mark.shows(
    "attention_keeps_images_apart",
    "attention_looks_at_every_token",
    "attention_knows_no_order",
)
@pytest.mark.explains(
    "attention_keeps_the_shape",
    "attention_averages_the_values",
    "attention_is_as_sharp_for_wide_heads",
    "attention_has_four_projections",
    "attention_drops_out",
)
@pytest.mark.weight(6)
@pytest.mark.parametrize(("heads", "dim_head"), SIZES)
def test_attention_matches_oracle(student, reference, heads, dim_head):
    """Attention computes softmax(q k^T / sqrt(dim_head)) v in every head, joins the heads and projects."""
    component = student.build("Attention", DIM, heads=heads, dim_head=dim_head)
    x = 2 * student.tensor(2, TOKENS, DIM)
    initial = component.weights()
    weights = component.randomize()
    y = output(component, x, reference, heads, dim_head)
    if not same(component(x), y):
        dropout_of(student, reference).require_rest()
    if proven(x, y, list(readings_of(weights, heads, dim_head))):
        reference.oracle.require_one_function(
            student,
            component,
            x,
            lambda rate: student.build("Attention", DIM, heads=heads, dim_head=dim_head, dropout=rate),
        )
        if (heads, dim_head) == SIZES[0]:
            require_usual_sizes(student)
        return
    # which bias belongs to which projection is not always told by the names: without them it need not be
    trainable = without_biases(weights, initial)
    component.set_weights(trainable)
    if proven(x, component(x), list(readings_of(trainable, heads, dim_head))):
        return
    # what has no effect is not part of the computation: that it is there is another check's
    used = with_effect(component, x, trainable)
    y = component(x)
    found = list(readings_of(used, heads, dim_head))
    if proven(x, y, found):
        return
    require_no_normalization(x, y, found)
    sizes = {"heads": heads, "dim_head": dim_head}
    held = without_learned_scales(component, used, initial, heads)
    if len(held) < len(used):
        used, y = held, component(x)
        found = list(readings_of(used, heads, dim_head))
        if proven(x, y, found):
            raise Undecided(WEIGHTS_OF_ITS_OWN)
    name_mistake(student, reference, component, x, used, initial, sizes)
    for rest in at_rest(component, used, initial, needed=2):
        found_at_rest = list(readings_of(rest, heads, dim_head))
        if proven(x, component(x), found_at_rest):
            raise Undecided(WEIGHTS_OF_ITS_OWN)
        name_mistake(student, reference, component, x, rest, initial, sizes)
    if not found:
        raise unreadable(reference, used, heads, dim_head)
    name_by_measurement(student, reference, component, x, found, sizes)
    raise Mismatch(
        "Attention does not compute softmax(q k^T / sqrt(dim_head)) v with its own weights, in whatever "
        "order q, k, v and the heads are read. " + description(component, student, found),
        hint="Follow one token by hand: scores for all keys, softmax over them, weighted sum of the values.",
    )


def require_usual_sizes(student):
    """The same for as many tokens and as wide ones as in a training.

    Raises:
        Mismatch: It is right for small sizes only.
    """
    component = student.build("Attention", WIDE, heads=USUAL_HEADS, dim_head=USUAL_DIM_HEAD)
    weights, x = component.randomize(), student.tensor(2, MANY_TOKENS, WIDE)
    found = readings(weights, dim=WIDE, heads=USUAL_HEADS, dim_head=USUAL_DIM_HEAD)
    if not proven(x, component(x, shape=tuple(x.shape)), list(found)):
        raise Mismatch(
            f"For {MANY_TOKENS} tokens and dim={WIDE}, Attention does not compute softmax(q k^T / "
            "sqrt(dim_head)) v; for smaller sizes it does.",
            hint="Every size goes through the same steps.",
        )


def output(component, x, reference, heads, dim_head):
    """What the component makes of x; typical mistakes are named by a shape that is not that of x."""
    typical = {
        (2, TOKENS, heads * dim_head): "heads_not_projected",
        (2, TOKENS, dim_head): "heads_averaged",
        (2, 1, DIM): "first_query_only",
        (2, DIM): "first_query_only",
    }
    try:
        return component(x, shape=tuple(x.shape))
    except Mismatch as error:
        mistake = typical.get(tuple(component(x).shape)) if error.cause is Cause.WRONG_SHAPE else None
        if mistake is None:
            raise
        raise reference.named(mistake, seen=error) from None


def name_mistake(student, reference, component, x, weights, initial, sizes):
    """Raise the known mistake that explains what the component computes with some of its weights."""
    y = component(x)
    found = list(readings_of(weights, **sizes))
    require_three_projections(reference, x, y, weights, **sizes)
    require_heads_of_their_width(reference, x, y, weights, **sizes)
    # for a single token the weights are 1, whatever the scores are: most mistakes are right there
    for candidates in (likely_of(student, component, x, found), found):
        for mistake in reference.mistakes_of("Attention"):
            if mistake.id in NOT_BY_OUTPUT:
                continue
            wrong = reference.oracle.wrong_attentions(reference, mistake, x, candidates, **sizes)
            if any(same(y, expected) for expected in wrong) and holds_elsewhere(
                student, reference, mistake, sizes
            ):
                require_scale_in_forward(student, mistake, readings_of(initial, **sizes), **sizes)
                raise reference.named(mistake.id)


def likely_of(student, component, x, found):
    """The readings under which the component is right for a single token, whose weight is always 1."""
    one = student.attempted(lambda: component(x[:1, :1])) if found else None
    return [] if one is None else [parts for parts in found if proven(x[:1, :1], one, [parts])]


def at_other_sizes(student, sizes):
    """The same for other sizes: x, output, likely readings, sizes; None if the part gives nothing there."""
    heads, dim_head = next(other for other in SIZES if other != (sizes["heads"], sizes["dim_head"]))

    def asked():
        component = student.build("Attention", DIM, heads=heads, dim_head=dim_head)
        initial = component.weights()
        weights = without_biases(component.randomize(), initial)
        component.set_weights(weights)
        weights = without_learned_scales(component, weights, initial, heads)
        x = 2 * student.tensor(2, TOKENS, DIM)
        found = likely_of(student, component, x, list(readings_of(weights, heads, dim_head)))
        return x, component(x), found, {"heads": heads, "dim_head": dim_head}

    return student.attempted(asked)


def holds_elsewhere(student, reference, mistake, sizes):
    """Whether a scale is a known wrong one at other sizes too: at one size, two can be the same number.

    Where the scale cannot be measured, one size has to do.
    """
    if mistake.id != "missing_scale" and not mistake.id.startswith("scale_"):
        return True
    found = at_other_sizes(student, sizes)
    if found is None:
        return True
    x, y, readings, other = found
    wrong = reference.oracle.wrong_attentions(reference, mistake, x, readings, **other)
    if any(same(y, expected) for expected in wrong):
        return True
    return reference.oracle.measured_scale(x, y, readings) is None


def name_by_measurement(student, reference, component, x, found, sizes):
    """Raise what is known of an Attention that is right except for a scale of its own, or for lost heads."""
    y = component(x)
    scale = reference.oracle.measured_scale(x, y, likely_of(student, component, x, found))
    if scale is None:
        if reference.oracle.lost_heads(x, y, found):
            raise reference.named("heads_lost")
        return
    other = at_other_sizes(student, sizes)
    elsewhere = reference.oracle.measured_scale(*other[:3]) if other else None
    if elsewhere is not None and abs(elsewhere / scale - 1) < 1e-2:
        raise reference.named("scale_fixed")
    width = sizes["dim_head"]
    raise Mismatch(
        f"With heads={sizes['heads']} and dim_head={width} the scores are multiplied by {scale:.3g}; "
        f"1 / sqrt(dim_head) is {width**-0.5:.3g}. All else is right.",
        hint="Use dim_head ** -0.5 as the scale.",
        diagnosis="scale_wrong",
        look_for="_ ** -0.5 | _ ** 0.5 | sqrt() | rsqrt(), scale",
    )


def proven(x, y, found):
    """Whether y is the attention of x under some reading of the weights."""
    return any(same(y, attention(x, parts)) for parts in found if parts.out is not None)


def require_scale_in_forward(student, mistake, initial, heads, dim_head):
    """Leave an Attention to a person whose queries, or keys, begin smaller by the scale, for any dim_head.

    Source: Raffel et al. (2020), who fold 1 / sqrt(dim_head) into the initial weights of the queries.
    """
    if mistake.id != "missing_scale" or not begins_scaled(initial, dim_head):
        return
    other = student.build("Attention", DIM, heads=heads, dim_head=4 * dim_head).weights()
    if begins_scaled(readings_of(other, heads, 4 * dim_head), 4 * dim_head):
        raise Undecided(
            "The scores are not divided by sqrt(dim_head) in forward, but one projection starts smaller than "
            "the others: perhaps the scale is folded into its initial weights."
        )


def begins_scaled(initial, dim_head):
    """Whether, in some reading, the queries' spread is that of the others divided by sqrt(dim_head)."""
    for parts in initial:
        q, k, v = (float(part.std()) for part in (parts.q, parts.k, parts.v))
        if abs(q * dim_head**0.5 / max(k, 1e-9) - 1) < 0.2 and 0.5 < k / max(v, 1e-9) < 2:
            return True
    return False


def description(component, student, found):
    """What is odd about an Attention that no known mistake explains, by the smallest input that shows it."""
    said = next(oddities(component, student.tensor, DIM, mixes_tokens=True), "")
    if said:
        return said
    for tokens in (1, 2):
        x = student.tensor(1, tokens, DIM)
        y = component(x)
        if not proven(x, y, found):
            if tokens == 1:
                return (
                    "It is already wrong for a single token, whose weight is 1 whatever the scores are: the "
                    "values, the joining of the heads, or the output projection is wrong."
                )
            return (
                "It is right for a single token, whose weight is 1, but not for two tokens: the values and "
                "the output projection are correct, the scores or the softmax are not."
            )
    return ""


def require_no_normalization(x, y, found):
    """Leave an Attention that is right but for a normalization of its own to a person."""
    normed = F.layer_norm(x, (DIM,))
    outputs = [F.layer_norm(attention(x, parts), (DIM,)) for parts in found if parts.out is not None]
    if proven(normed, y, found) or any(same(y, output) for output in outputs):
        raise Undecided(
            "Attention is right except for a layer normalization of its own; the handout leaves that to "
            "PreNorm, so tokens are normalized twice."
        )


def without_learned_scales(component, weights, initial, heads):
    """The weights without scales that are learned, for all heads or each: the component holds them as begun.

    Biases and gains are held already: what begins at 0 or 1 is.
    """
    scales = {name: initial[name] for name in weights if initial[name].numel() in (1, heads)}
    scales = {name: value for name, value in scales.items() if float(value.flatten()[0]) not in (0.0, 1.0)}
    component.set_weights(scales)
    return {name: value for name, value in weights.items() if name not in scales}


def require_three_projections(reference, x, y, weights, heads, dim_head):
    """Name an Attention in which one projection serves as two of queries, keys and values."""
    for value in weights.values():
        if value.numel() == heads * dim_head * DIM:
            for parts in readings_of({**weights, "copy": value}, heads, dim_head):
                if proven(x, y, [parts]):
                    raise reference.named(
                        "keys_share_a_projection" if torch.equal(parts.q, parts.k) else "values_not_used"
                    )


def require_heads_of_their_width(reference, x, y, weights, heads, dim_head):
    """Name an Attention with dim_head heads of the width heads."""
    for parts in readings_of(weights, dim_head, heads):
        if parts.out is not None:
            for width in (heads, dim_head):
                if same(y, attention(x, parts, scale=width**-0.5)):
                    raise reference.named("head_sizes_swapped")


def readings_of(weights, heads, dim_head):
    """Every reading of the weights; none when their sizes do not add up."""
    try:
        yield from readings(weights, dim=DIM, heads=heads, dim_head=dim_head)
    except UnreadableWeights:
        return


def unreadable(reference, weights, heads, dim_head):
    """What is wrong with weights that have no reading."""
    weights = squeezed(weights)
    if any(readings_of(weights, heads, DIM // heads)):
        return reference.named("dim_head_ignored")
    if any(readings_of(weights, 4, dim_head)):
        return reference.named("heads_ignored")
    if {DIM, dim_head} in [set(value.shape) for value in weights.values() if value.ndim == 2]:
        return reference.named("heads_averaged")
    shapes = ", ".join(str(tuple(value.shape)) for value in weights.values() if value.ndim > 1) or "none"
    return Mismatch(
        "The weights are not three projections of heads * dim_head rows for q, k and v and one back to "
        f"dim. For dim={DIM}, heads={heads}, dim_head={dim_head} there are matrices of shape {shapes}.",
        hint=f"heads * dim_head is {heads * dim_head} here; q, k and v each have that many features.",
        diagnosis="attention_projections",
    )


@pytest.mark.because("attention_matches_oracle")
@pytest.mark.weight(1)
@pytest.mark.explains("attention_has_four_projections")
def test_attention_has_the_parameters_of_its_parts(student, reference):
    """Attention has projections to q, k and v and one back, with or without biases, for all sizes."""
    spares = []
    for heads, dim_head in ((HEADS, DIM_HEAD), (2, DIM // 2)):
        inner = heads * dim_head
        component = student.build("Attention", DIM, heads=heads, dim_head=dim_head)
        spares.append(component.parameter_count - 3 * inner * DIM)
        if spares[-1] > inner * DIM + 3 * inner + 9 * DIM:
            raise Mismatch(
                f"Attention has {component.parameter_count} parameters; three projections of dim={DIM} to "
                f"heads * dim_head = {inner} features and one back have {4 * inner * DIM}, and biases.",
                hint="Is a layer constructed twice, or constructed and never used?",
                diagnosis="parameter_count",
            )
    if spares[0] >= HEADS * DIM_HEAD * DIM and spares[1] <= 3 * DIM:
        raise reference.named("output_projection_missing")


@pytest.mark.weight(1)
def test_attention_lets_gradients_through(student, reference):
    """In Attention the gradient reaches the input and every parameter, through scores and values alike."""
    component = student.build("Attention", DIM, heads=HEADS, dim_head=DIM_HEAD)
    initial = component.weights()
    trainable = without_biases(component.randomize(), initial)
    component.set_weights(trainable)
    x, cotangent = student.tensor(1, TOKENS, DIM), student.tensor(1, TOKENS, DIM)
    found = reference.oracle.gradients_of_one(component, x, cotangent)
    if found.input is None:
        raise Mismatch(
            "No gradient reaches Attention's input.",
            hint="Look for detach, .data or no_grad.",
            diagnosis="gradient_cut",
            look_for="detach() | no_grad() | _.data",
        )
    if found.missing:
        raise Mismatch(
            f"The parameter {named(found.missing[0])} receives no gradient: it is not used, or cut off.",
            diagnosis="unused_parameter",
        )
    for parts in readings_of(trainable, HEADS, DIM_HEAD):
        if parts.out is not None and same(found.output, attention(x, parts)):
            through = reference.oracle.gradients_through_parts(x, cotangent, parts)
            if same(found.input, through.values, tolerance=1e-3):
                raise reference.named("attention_cut")
            if not same(found.input, through.scores + through.values, tolerance=1e-3):
                raise cut_somewhere()
            break
    if any(reference.oracle.cut_rows(component, x, found)):
        raise cut_somewhere()


def cut_somewhere():
    """That a part of Attention is not learned, where it is not known which one."""
    return Mismatch(
        "In Attention a part of the gradient is cut off: values are computed that nothing is learned from.",
        hint="Look for detach, .data or no_grad.",
        diagnosis="gradient_cut",
        look_for="detach() | no_grad() | _.data",
    )


@pytest.mark.weight(1)
@pytest.mark.shows("attention_drops_out")
def test_attention_drops_out_in_training_only(student, reference):
    """Attention's dropout acts in training, at the rate that is asked for, and is off in evaluation."""
    dropout_of(student, reference).require()
    half = student.build("Attention", DIM, heads=HEADS, dim_head=DIM_HEAD, dropout=0.5)
    if not bool((half(student.tensor(4, 9, DIM), shape=(4, 9, DIM), train=True) == 0).any()):
        student.policy(
            "dropout_before_projection",
            "Attention drops nothing after its output projection, only before it.",
            "Apply nn.Dropout(dropout) to what the output projection gives.",
        )


def dropout_of(student, reference):
    """What is found out about the dropout of Attention."""
    return reference.oracle.ProbedDropout(
        reference,
        lambda rate: student.build("Attention", DIM, heads=HEADS, dim_head=DIM_HEAD, dropout=rate),
        student.tensor(4, 9, DIM),
        names="attention_dropout_",
        part="attention_",
    )
