"""Transformer, alone: Attention, FeedForward and PreNorm are fakes, or read where they stand inline."""

from math import prod

import pytest
import torch

from grader.kit import AffineFake, Mismatch, answer, same
from grader.kit.transformers import layer_norms

pytestmark = pytest.mark.component("Transformer")

# all different, so that the shapes of weights tell what they are
DEPTH, DIM, HEADS, DIM_HEAD, HIDDEN = 3, 22, 5, 6, 31
WIDE, DEEP, MANY_TOKENS = 48, 7, 50  # as in a training
SIZES = {"heads": HEADS, "dim_head": DIM_HEAD, "mlp_dim": HIDDEN}
ATTENTION = AffineFake(scale=(0.9, 0.6, 1.2), shift=(0.3, -0.2, 0.1), roll=1, parameters=7)
FEED_FORWARD = AffineFake(scale=(0.5, 1.1, 0.8), shift=(-0.1, 0.2, 0.4), roll=2, parameters=11)
PRENORM = AffineFake(scale=(0.7,), shift=(0.2,), wraps=True)
FAKES = {"Attention": ATTENTION, "FeedForward": FEED_FORWARD, "PreNorm": PRENORM}


def built(student, depth=DEPTH, dropout=0.0):
    """The student's Transformer with fakes in the places of its parts."""
    return student.build("Transformer", DIM, depth, *SIZES.values(), dropout=dropout, replace=FAKES)


def called(transformer, name):
    """The numbers of the instances of a part that were called, in order."""
    return [call.instance for call, _ in transformer.calls if call.component == name]


def uses(transformer, name):
    """Whether the Transformer constructs the student's class of that name."""
    return bool(transformer.constructions(name))


@pytest.mark.because("transformer_matches_oracle")
@pytest.mark.weight(1)
@pytest.mark.shows(
    "transformer_adds_to_its_input",
    "transformer_runs_its_blocks_in_order",
    "transformer_normalizes_before_each_part",
)
def test_transformer_has_depth_layers(student, reference):
    """Transformer runs depth blocks, each with an Attention and a FeedForward of its own."""
    for depth in (DEPTH, 1):
        transformer = built(student, depth)
        transformer(student.tensor(2, 7, DIM), shape=(2, 7, DIM))
        for part in ("Attention", "FeedForward"):
            instances = called(transformer, part)
            if not instances and uses(transformer, part):
                raise reference.named(
                    "attention_not_called" if part == "Attention" else "feed_forward_not_called"
                )
            if instances and len(instances) != depth:
                raise reference.named("wrong_depth")
            if len(set(instances)) != len(instances):
                raise reference.named("shared_layers")


@pytest.mark.weight(6)
@pytest.mark.shows(
    "transformer_adds_to_its_input",
    "transformer_runs_its_blocks_in_order",
    "transformer_normalizes_before_each_part",
)
def test_transformer_matches_oracle(student, reference):
    """Every block computes x = x + Attention(norm(x)), then x = x + FeedForward(norm(x))."""
    transformer = built(student)
    x = student.tensor(2, 7, DIM)
    y = transformer(x, shape=(2, 7, DIM))
    if not uses(transformer, "Attention") or not uses(transformer, "FeedForward"):
        reference.oracle.prove_inline(student, reference, built, FAKES, DIM, SIZES)
        return
    norm, attentions, feed_forwards = parts_of(transformer)
    correct = blocks(x, norm, attentions, feed_forwards)
    if any(same(y, z) for z in (correct, *layer_norms(correct, {}))):
        reference.oracle.require_one_function(student, transformer, x)
        if len(called(transformer, "Attention")) == DEPTH:  # else another check says so
            require_usual_sizes(student)
        return
    # without the class PreNorm, the normalizations are written inline: a real one stands in for them
    used = {name: fake for name, fake in FAKES.items() if called(transformer, name)}
    for mistake in reference.mistakes_of("Transformer"):
        if same(y, reference.oracle.wrong_transformer(reference, mistake, x, DEPTH, SIZES, used)):
            if mistake.id == "no_residual" and prenorm_adds(student):
                raise Mismatch(
                    "The Transformer adds nothing to what its parts give, because the residual connection "
                    "stands in your PreNorm. PreNorm only normalizes; the Transformer adds.",
                    hint="Write x = x + attention(x) here, and return self.fn(self.norm(x)) in PreNorm.",
                    diagnosis="residual_in_prenorm",
                )
            raise reference.named(mistake.id)
    raise Mismatch(
        "A block does not compute x = x + Attention(norm(x)) followed by x = x + FeedForward(norm(x)). "
        + description(student, x, norm, attentions, feed_forwards),
        hint="Two residual connections per block, each around PreNorm and the part that it wraps.",
    )


def require_usual_sizes(student):
    """The same for as many blocks and tokens, and as wide ones, as in a training.

    Raises:
        Mismatch: It is right for small sizes only.
    """
    transformer = student.build("Transformer", WIDE, DEEP, *SIZES.values(), replace=FAKES)
    x = student.tensor(2, MANY_TOKENS, WIDE)
    y = transformer(x, shape=tuple(x.shape))
    correct = blocks(x, *parts_of(transformer))
    runs = len(called(transformer, "Attention"))
    if runs != DEEP:
        raise Mismatch(
            f"With depth={DEEP}, the Transformer runs {runs} blocks; with depth={DEPTH} it runs all.",
            hint="Every block is constructed and called, however many there are.",
            look_for="_[:_], loop",
        )
    if not any(same(y, z, tolerance=1e-3) for z in (correct, *layer_norms(correct, {}))):
        raise Mismatch(
            f"For depth={DEEP}, {MANY_TOKENS} tokens and dim={WIDE}, the Transformer does not run its blocks "
            "as it should; for smaller sizes it does.",
            hint="Every size goes through the same steps.",
        )


def prenorm_adds(student):
    """Whether the student's own PreNorm has a residual: it answers although what it wraps gives zeros."""
    x = student.tensor(2, 7, DIM)
    silent = AffineFake(scale=(0.0,), shift=(0.0,))
    prenorm = student.attempted(lambda: student.build("PreNorm", DIM, inner=silent)(x))
    other = student.attempted(
        lambda: student.build("PreNorm", DIM, inner=silent)(x + student.tensor(2, 7, DIM))
    )
    return prenorm is not None and other is not None and not same(prenorm, other)


def description(student, x, norm, attentions, feed_forwards):
    """What a wrong Transformer does with one block, as far as sums of its parts show it."""
    one = built(student, 1)
    found = one(x, shape=tuple(x.shape))
    order = [call.component for call, _ in one.calls]
    if attentions and feed_forwards and same(found, blocks(x, norm, attentions[:1], feed_forwards[:1])):
        return "With depth=1 the output is right, with depth=3 it is not: look at how the blocks are chained."
    return f"With depth=1 it calls, in this order: {', '.join(order)}."


@pytest.mark.weight(1)
@pytest.mark.shows("transformer_gives_its_parts_their_sizes")
def test_transformer_hands_its_sizes_on(student, reference):
    """Transformer hands dim, heads, dim_head, mlp_dim and dropout on to its parts as they were given."""
    transformer = built(student, dropout=0.25)
    expected = {
        "Attention": {"dim": DIM, "heads": HEADS, "dim_head": DIM_HEAD, "dropout": 0.25},
        "FeedForward": {"dim": DIM, "hidden_dim": HIDDEN, "dropout": 0.25},
    }
    for part, sizes in expected.items():
        for given in transformer.constructions(part):
            wrong = reference.oracle.not_handed_on(part, sizes, given)
            if (given.get("heads"), given.get("dim_head")) == (DIM_HEAD, HEADS):
                raise reference.named("heads_and_dim_head_swapped")
            if "hidden_dim" in wrong:
                raise reference.named("mlp_dim_ignored")
            if "dropout" in wrong and not drops_out_itself(student):
                raise reference.named("dropout_not_handed_on")
            for name in wrong:
                if name != "dropout":
                    raise reference.oracle.ignored_size("Transformer", part, name, sizes[name], given)
    if is_random(student, transformer) and not is_random(student, built(student)):
        raise reference.named("transformer_dropout_in_evaluation")


def is_random(student, transformer):
    """Whether the Transformer can be called, and gives other outputs each time in evaluation mode."""
    x = student.tensor(2, 7, DIM)
    outputs = student.attempted(lambda: tuple(transformer.repeated(x, times=2)))
    return outputs is not None and not same(*outputs)


def drops_out_itself(student):
    """Whether the Transformer drops out around its parts, which know nothing of it."""
    transformer, x = built(student, dropout=0.5), student.tensor(2, 7, DIM)
    return not same(transformer(x, train=True), transformer(x, train=True))


@pytest.mark.because("transformer_has_depth_layers")
@pytest.mark.weight(1)
@pytest.mark.shows("transformer_runs_its_blocks_in_order")
def test_transformer_registers_its_layers(student, reference):
    """The optimizer sees the parameters of all blocks."""
    every = [built(student, depth) for depth in (1, 2, 3)]
    counts = [transformer.parameter_count for transformer in every]
    least = ATTENTION.parameters + FEED_FORWARD.parameters
    if counts[0] < least and counts[0] == counts[1]:
        raise reference.named("unregistered_layers")
    if all(len(every[1].constructions(part)) == 2 for part in ("Attention", "FeedForward")):
        held = [sum(prod(parameter.shape) for parameter in each.parameters) for each in every]  # frozen, too
        if held[1] - held[0] < least:
            raise reference.named("unregistered_layers")
    if counts[0] == counts[1]:
        raise Mismatch(
            "Transformer has as many parameters with depth=2 as with depth=1.",
            hint="Every block should have parts of its own.",
        )
    if counts[2] - counts[1] != counts[1] - counts[0]:
        raise Mismatch("The blocks have different numbers of parameters.")


@pytest.mark.because("transformer_matches_oracle")
@pytest.mark.weight(1)
def test_transformer_has_the_parameters_of_its_parts(student, reference):
    """Besides its Attention and FeedForward, a block has two normalizations, and no other parameters."""
    one, two = built(student, 1), built(student, 2)
    if not all(uses(one, part) for part in ("Attention", "FeedForward")):
        return  # inline parts are read as a whole
    spare = two.parameter_count - one.parameter_count - ATTENTION.parameters - FEED_FORWARD.parameters
    known = {parameter.name for parameter in one.parameters}
    new = [value for name, value in two.weights().items() if name not in known and value.numel() == DIM]
    if spare == 2 * DIM and sum(bool((value == 1).all()) for value in new) == 1:
        raise reference.named("shared_norm")
    if spare > 8 * DIM:
        raise Mismatch(
            f"Besides its Attention and FeedForward, a block has {spare} parameters; two normalizations have "
            f"{4 * DIM} (with dim={DIM}).",
            hint="Is a layer constructed twice, or constructed and never used?",
            diagnosis="parameter_count",
        )


@pytest.mark.weight(1)
def test_transformer_lets_gradients_through(student, reference):
    """In Transformer the gradient reaches the input through the residuals and through the parts."""
    transformer = built(student)
    x, cotangent = student.tensor(1, 7, DIM), student.tensor(1, 7, DIM)
    found = reference.oracle.gradients_of_one(transformer, x, cotangent)
    if found.input is None:
        raise Mismatch(
            "No gradient reaches Transformer's input.",
            hint="Look for detach, .data or no_grad.",
            diagnosis="gradient_cut",
            look_for="detach() | no_grad() | _.data",
        )
    if not all(called(transformer, part) for part in ("Attention", "FeedForward")):
        return
    cut = gradient_of(lambda x: blocks(x, *parts_of(transformer), skip=torch.Tensor.detach), x, cotangent)
    x = x.requires_grad_()
    correct = blocks(x, *parts_of(transformer))
    for number, z in enumerate((correct, *layer_norms(correct, {}))):
        if same(found.output, z.detach()):  # wrong outputs are another check's
            (z * cotangent).sum().backward()
            if same(found.input, x.grad, tolerance=1e-3):
                return
            if number == 0 and not same(found.input, cut, tolerance=1e-3):
                raise Mismatch(
                    "In Transformer a part of the gradient is cut off: it does not pass the residual "
                    "connections and all parts.",
                    hint="Look for detach, .data or no_grad.",
                    diagnosis="gradient_cut",
                    look_for="detach() | no_grad() | _.data",
                )
            raise reference.named("skip_cut")


def gradient_of(function, x, cotangent):
    """The gradient that reaches the input of a function."""
    x = x.detach().clone().requires_grad_()
    (function(x) * cotangent).sum().backward()
    return x.grad


def parts_of(transformer):
    """The functions that the blocks are made of: norm(x), attention_i(x), feed_forward_i(x)."""
    if called(transformer, "PreNorm"):
        norm = lambda x: answer(PRENORM, 0, x)  # noqa: E731
    else:  # nn.LayerNorm written inline, with its initial weights
        norm = lambda x: next(layer_norms(x, {}))  # noqa: E731
    attentions, feed_forwards = called(transformer, "Attention"), called(transformer, "FeedForward")
    return (
        norm,
        [lambda x, i=i: answer(ATTENTION, i, x) for i in attentions],
        [lambda x, i=i: answer(FEED_FORWARD, i, x) for i in feed_forwards],
    )


def blocks(x, norm, attentions, feed_forwards, skip=lambda x: x):
    """What the Transformer should compute, with something done to what the residual connections hand on."""
    for attention, feed_forward in zip(attentions, feed_forwards, strict=False):
        x = skip(x) + attention(norm(x))
        x = skip(x) + feed_forward(norm(x))
    return x
