"""Layers: forward by what they do, backward by closed forms, whatever the layout of their weights."""

import numpy as np
import pytest

from grader.kit import Mismatch


def numbers(student, *shape):
    return student.tensor(*shape, double=True).numpy()


def recognized(reference, component, scenario, found):
    """Raise the mistake whose version does the same."""
    for mistake in reference.mistakes_of(component):
        try:
            wrong = scenario(mistake)
        except (ValueError, TypeError, IndexError, AttributeError):
            continue  # it does not come so far
        if reference.oracle.same(found, wrong):
            raise reference.named(mistake.id)


@pytest.mark.component("Linear")
def test_linear_is_affine(student, reference):
    """Linear is x W + b: the same for each example, and linear."""
    oracle, part = reference.oracle, reference.oracle.Remote(student.make("Linear", 5, 3, seed=4))
    weight, bias = oracle.affine(part, 5, 3)
    x = numbers(student, 6, 5)
    if not np.allclose(part.forward(x, (6, 3)), x @ weight + bias, atol=1e-4):
        raise Mismatch("Linear is not x W + b: what it gives for a sum is not the sum of what it gives.")
    if np.ptp(weight) < 1e-6:
        raise Mismatch("All weights of Linear are equal: draw them at random.", hint="Use the seed.")
    other, _ = oracle.affine(oracle.Remote(student.make("Linear", 5, 3, seed=5)), 5, 3)
    if np.allclose(weight, other):
        raise Mismatch("Linear draws the same weights for seeds 4 and 5.", hint="np.random.default_rng(seed)")


@pytest.mark.component("Linear")
def test_linear_learns_a_bias(student, reference):
    """Linear has a bias that can be learned."""
    oracle, thing = reference.oracle, student.make("Linear", 4, 3, seed=1)
    part = oracle.Remote(thing)
    part.forward(numbers(student, 2, 4), (2, 3))
    part.backward(np.ones((2, 3)), (2, 4))
    if not np.abs(oracle.linear_gradients(part, np.zeros((3, 4)), np.ones((3, 3)))["bias"]).max() > 0:
        raise reference.named("linear_no_bias")


@pytest.mark.component("Linear")
@pytest.mark.weight(2)
def test_linear_goes_backward(student, reference):
    """Linear's gradients by input, weights and bias are those of its output."""
    oracle = reference.oracle
    part = oracle.Remote(student.make("Linear", 5, 3, seed=2))
    weight, bias = oracle.affine(part, 5, 3)
    x, upstream, first = numbers(student, 6, 5), numbers(student, 6, 3), numbers(student, 6, 5)

    def scenario(each):
        each.forward(first, (6, 3))  # an earlier batch must leave nothing behind
        each.backward(upstream[::-1].copy(), (6, 5))
        return oracle.linear_gradients(each, x, upstream)

    found = scenario(part)
    expected = {"input": upstream @ weight.T, "weight": x.T @ upstream, "bias": upstream.sum(axis=0)}
    if oracle.same(found, expected):
        return

    def of(mistake):
        return scenario(oracle.Own(oracle.with_weights(reference.wrong(mistake, 5, 3), weight, bias)))

    recognized(reference, "Linear", of, found)
    wrong = " and ".join(oracle.others(found, expected))
    raise Mismatch(f"The gradient of Linear by {wrong} is not that of its output.")


@pytest.mark.component("ReLU")
@pytest.mark.weight(2)
def test_relu_goes_backward(student, reference):
    """ReLU passes the gradient on where its input was above 0."""
    oracle = reference.oracle
    x, upstream = numbers(student, 5, 4), numbers(student, 5, 4)

    def scenario(each):
        each.forward(-x, x.shape)
        return {"output": each.forward(x, x.shape), "input": each.backward(upstream, x.shape)}

    found = scenario(oracle.Remote(student.make("ReLU")))
    if oracle.same(found, {"output": np.maximum(x, 0), "input": upstream * (x > 0)}):
        return
    recognized(reference, "ReLU", lambda each: scenario(oracle.Own(reference.wrong(each))), found)
    raise Mismatch("ReLU does not pass on just the gradients where its last input was above 0.")


@pytest.mark.component("ReLU")
def test_relu_leaves_its_input(student, reference):
    """ReLU does not change what it is given."""
    x = numbers(student, 3, 4)
    outcome = student.make("ReLU").call("forward", x)
    if not np.array_equal(outcome.args[0].array(3, 4), x):
        raise reference.named("relu_in_place")


@pytest.mark.component("BatchNorm")
@pytest.mark.weight(2)
def test_batch_norm_goes_forward(student, reference):
    """BatchNorm uses the batch in training, and running statistics in evaluation."""
    oracle, batches = reference.oracle, [3 * numbers(student, 7, 4) + 1 for _ in range(3)]
    held_out = numbers(student, 5, 4)

    def scenario(each):
        return oracle.norm_outputs(each, batches, held_out)

    found = scenario(oracle.Remote(student.make("BatchNorm", 4, momentum=0.2, eps=0.5)))
    versions = (reference.BatchNorm, reference.oracle.with_correction(reference.BatchNorm))
    if any(oracle.same(found, scenario(oracle.Own(made(4, 0.2, 0.5)))) for made in versions):
        return
    recognized(
        reference, "BatchNorm", lambda each: scenario(oracle.Own(reference.wrong(each, 4, 0.2, 0.5))), found
    )
    expected = scenario(oracle.Own(reference.BatchNorm(4, 0.2, 0.5)))
    wrong = " and ".join(oracle.others(found, expected))
    raise Mismatch(f"BatchNorm gives other numbers than its definition: {wrong}.")


@pytest.mark.component("BatchNorm")
@pytest.mark.weight(2)
@pytest.mark.because("batch_norm_goes_forward")
def test_batch_norm_goes_backward(student, reference):
    """BatchNorm's gradients include what its statistics owe to the input."""
    oracle = reference.oracle
    x, upstream = 2 * numbers(student, 6, 3) - 1, numbers(student, 6, 3)
    values = [0.5 + np.abs(numbers(student, 3)), numbers(student, 3)]

    def scenario(each):
        count = len(each.arrays("parameters"))
        each.fill("parameters", values if count == 2 else [np.stack(values)])
        return oracle.norm_gradients(each, x, upstream)

    found = scenario(oracle.Remote(student.make("BatchNorm", 3)))
    rights = [reference.BatchNorm, oracle.swapped(reference.BatchNorm)]
    if any(oracle.same(found, scenario(oracle.Own(made(3)))) for made in rights):
        return
    recognized(reference, "BatchNorm", lambda each: scenario(oracle.Own(reference.wrong(each, 3))), found)
    wrong = " and ".join(oracle.others(found, scenario(oracle.Own(reference.BatchNorm(3)))))
    raise Mismatch(f"The gradient of BatchNorm by {wrong} is not that of its output.")
