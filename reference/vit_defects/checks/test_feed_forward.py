"""FeedForward, alone."""

import itertools

import pytest
import torch
from torch.nn import functional as F

from grader.kit import Cause, Mismatch, Undecided, named, same
from grader.kit.transformers import activations, feed_forwards, oddities, squeezed, two_layers

pytestmark = pytest.mark.component("FeedForward")

DIM, HIDDEN = 22, 31
WIDE, WIDER, MANY_TOKENS = 48, 130, 50  # as in a training


@pytest.mark.shows(
    "feed_forward_keeps_the_shape",
    "feed_forward_takes_each_token_alone",
    "feed_forward_is_not_linear",
)
@pytest.mark.explains("feed_forward_has_two_layers", "feed_forward_drops_out")
@pytest.mark.weight(4)
def test_feed_forward_matches_oracle(student, reference):
    """FeedForward computes W2 activation(W1 x + b1) + b2 with one hidden layer of hidden_dim."""
    feed_forward = student.build("FeedForward", DIM, HIDDEN)
    weights = feed_forward.randomize()
    x = 2 * student.tensor(3, 5, DIM)
    try:
        y = feed_forward(x, shape=(3, 5, DIM))
    except Mismatch as error:
        if error.cause is Cause.WRONG_SHAPE and feed_forward(x).shape[-1:] == (HIDDEN,):
            raise reference.named("second_layer_missing", seen=error) from None
        raise
    usual = list(activations().values())

    def gives(changed=lambda z: z, inner=usual):
        """Whether y is what some activation's layer gives, then changed."""
        return any(same(y, changed(z)) for act in inner for z in feed_forwards(x, weights, HIDDEN, act))

    if not same(feed_forward(x), y):
        dropout_of(student, reference).require_rest()
    if gives():
        at_rate = lambda rate: student.build("FeedForward", DIM, HIDDEN, dropout=rate)  # noqa: E731
        reference.oracle.require_one_function(student, feed_forward, x, at_rate)
        require_usual_sizes(student, usual)
        return
    if gives(inner=[lambda z: z]):
        raise reference.named("feed_forward_no_activation")
    if any(gives(last, [*usual, lambda z: z]) for last in usual):
        raise reference.named("feed_forward_activation_last")
    if gives(inner=[lambda z, axis=axis: z.softmax(axis) for axis in (0, 1, 2)]):
        raise reference.named("activation_is_softmax")
    if gives(lambda z: z + x):
        raise reference.named("feed_forward_residual")
    if gives(lambda z: F.layer_norm(z, (DIM,))) or has_a_norm_behind(y, x, weights, usual):
        raise Undecided("FeedForward normalizes its output; the handout leaves normalization to PreNorm.")
    fault = explained(student, reference, feed_forward, weights, x, y)
    if fault is not None:
        raise fault


def require_usual_sizes(student, usual):
    """The same for as many tokens and as wide ones as in a training.

    Raises:
        Mismatch: It is right for small sizes only.
    """
    feed_forward = student.build("FeedForward", WIDE, WIDER)
    weights, x = feed_forward.randomize(), 2 * student.tensor(2, MANY_TOKENS, WIDE)
    y = feed_forward(x, shape=tuple(x.shape))
    if not any(same(y, z) for act in usual for z in feed_forwards(x, weights, WIDER, act)):
        raise Mismatch(
            f"For {MANY_TOKENS} tokens, dim={WIDE} and hidden_dim={WIDER}, FeedForward does not compute "
            "W2 activation(W1 x + b1) + b2; for smaller sizes it does.",
            hint="Every size goes through the same steps.",
        )


def has_a_norm_behind(y, x, weights, usual):
    """Whether y is a layer normalization, with a gain and a bias of its own, of the usual output."""
    vectors = [v for v in squeezed(weights).values() if v.ndim == 1 and len(v) == DIM][:4]
    for act, (gain, bias) in itertools.product(usual, itertools.permutations(vectors, 2)):
        if any(same(y, F.layer_norm(z, (DIM,), gain, bias)) for z in feed_forwards(x, weights, HIDDEN, act)):
            return True
    return False


def explained(student, reference, feed_forward, weights, x, y):
    """What to raise about a FeedForward that no usual activation explains; None if another one does."""
    matrices = [value for value in squeezed(weights).values() if value.ndim > 1]
    hidden = [value for value in matrices if {DIM, HIDDEN} <= set(value.shape)]
    said = next(oddities(feed_forward, student.tensor, DIM, mixes_tokens=False), "")
    if len(hidden) == 2 and len(matrices) == 2:
        if said:
            return Mismatch(said, hint="Linear, activation, Linear: all three work on every token by itself.")
        if has_another_activation(feed_forward, weights, x, y):
            return None
        return Mismatch("FeedForward does not compute W2 activation(W1 x + b1) + b2 with its own weights.")
    if not hidden and len(matrices) == 2:
        return reference.named("hidden_dim_ignored")
    if len(matrices) == 1:
        return reference.named("feed_forward_single_layer")
    shapes = ", ".join(str(tuple(value.shape)) for value in matrices) or "none"
    return Mismatch(
        f"There should be two weight matrices, ({HIDDEN}, {DIM}) and ({DIM}, {HIDDEN}) for dim={DIM} and "
        f"hidden_dim={HIDDEN}; there are {shapes}. {said}",
        hint="Linear(dim, hidden_dim), activation, Linear(hidden_dim, dim).",
        diagnosis="feed_forward_layers",
    )


def has_another_activation(feed_forward, weights, x, y):
    """Whether y is W2 activation(W1 x + b1) + b2 for an activation that works on every number by itself.

    With weights that let one input number through one hidden unit to one output number, the layer is the
    activation, and is asked what it makes of W1 x + b1.
    """
    trainable = {p.name for p in feed_forward.parameters}
    for layers in two_layers(weights, DIM, HIDDEN):
        probe = {
            name: value.clone().zero_()
            for name, value in weights.items()
            if name in trainable and value.shape[0] in (DIM, HIDDEN)
        }
        for name in (layers.first_name, layers.second_name):
            probe[name].view(-1)[0] = 1.0
        feed_forward.set_weights(probe)
        for b1 in layers.first_biases:
            before = F.linear(x, layers.first, b1)
            asked = x.new_zeros(1, before.numel(), DIM)
            asked[0, :, 0] = before.flatten()
            after = feed_forward(asked)[0, :, 0].reshape(before.shape)
            if is_straight(before.flatten(), after.flatten()):
                continue
            if any(same(y, F.linear(after, layers.second, b2)) for b2 in layers.second_biases):
                return True
    return False


def is_straight(x, y):
    """Whether y is a x + b for all pairs of numbers."""
    columns = torch.stack([x, torch.ones_like(x)], dim=1)
    return same(columns @ torch.linalg.lstsq(columns, y[:, None]).solution[:, 0], y, tolerance=1e-3)


@pytest.mark.weight(1)
@pytest.mark.shows("feed_forward_drops_out")
def test_feed_forward_drops_out_in_training_only(student, reference):
    """FeedForward's dropout acts in training, at the rate that is asked for, and is off in evaluation."""
    dropout_of(student, reference).require()


def dropout_of(student, reference):
    """What is found out about the dropout of FeedForward."""
    return reference.oracle.ProbedDropout(
        reference,
        lambda rate: student.build("FeedForward", DIM, HIDDEN, dropout=rate),
        student.tensor(4, 9, DIM),
        names="dropout_",
        part="feed_forward_",
    )


@pytest.mark.weight(1)
def test_feed_forward_lets_gradients_through(student, reference):
    """In FeedForward the gradient reaches the input and every parameter."""
    feed_forward = student.build("FeedForward", DIM, HIDDEN)
    x, cotangent = student.tensor(1, 5, DIM), student.tensor(1, 5, DIM)
    found = reference.oracle.gradients_of_one(feed_forward, x, cotangent)
    if found.input is None or found.missing:
        part = f"parameter {named(found.missing[0])}" if found.missing else "input"
        raise Mismatch(
            f"No gradient reaches FeedForward's {part}: it is not used, or cut off.",
            hint="Look for detach, .data or no_grad.",
            diagnosis="unused_parameter" if found.missing else "gradient_cut",
            look_for="detach() | no_grad() | _.data",
        )
