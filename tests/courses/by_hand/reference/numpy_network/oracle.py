"""What parts do, in terms that no layout of weights changes, of a student's part and of ours alike.

A scenario takes a part, which is called by name, and gives arrays by name.
"""

import numpy as np

STEP = 1.0  # what is affine in its weights may be stepped far


class Remote:
    """A student's object: its answers are checked for being arrays of the right shape."""

    def __init__(self, thing):
        self._thing = thing

    def forward(self, x, shape, *, training=True):
        return self._thing.call("forward", x, training=training).returned.array(*shape)

    def backward(self, upstream, shape):
        return self._thing.call("backward", upstream).returned.array(*shape)

    def arrays(self, member):
        return [each.array() for each in self._thing.call(member).returned.items()]

    def fill(self, member, values):
        self._thing.fill(member, values)


class Own:
    """One of ours, a right one or a mistaken one."""

    def __init__(self, part):
        self._part = part

    def forward(self, x, shape, *, training=True):
        return np.asarray(self._part.forward(x.copy(), training=training), dtype=np.float64)

    def backward(self, upstream, shape):
        return np.asarray(self._part.backward(upstream.copy()), dtype=np.float64)

    def arrays(self, member):
        return [np.array(each) for each in getattr(self._part, member)()]

    def fill(self, member, values):
        for array, value in zip(getattr(self._part, member)(), values, strict=True):
            array[...] = value


def affine(part, inputs, outputs):
    """W (inputs, outputs) and b (outputs,) of what is affine, by asking it."""
    shift = part.forward(np.zeros((1, inputs)), (1, outputs), training=False)[0]
    return part.forward(np.eye(inputs), (inputs, outputs), training=False) - shift, shift


def linear_gradients(part, x, upstream):
    """What a step along the gradients changes of W and b: the gradients, however they are stored."""
    inputs, outputs = x.shape[1], upstream.shape[1]
    before = affine(part, inputs, outputs)
    part.forward(x, upstream.shape)
    by_input = part.backward(upstream, x.shape)
    parameters, gradients = part.arrays("parameters"), part.arrays("gradients")
    part.fill("parameters", [p - STEP * g for p, g in zip(parameters, gradients, strict=True)])
    after = affine(part, inputs, outputs)
    part.fill("parameters", parameters)
    by_weight, by_bias = ((b - a) / STEP for b, a in zip(before, after, strict=True))
    return {"input": by_input, "weight": by_weight, "bias": by_bias}


def with_weights(part, weight, bias):
    """Ours, with a student's W and b."""
    part.weight[...], part.bias[...] = weight, bias
    return part


def norm_outputs(part, batches, held_out):
    """Outputs in training for each batch, and then in evaluation."""
    found = {f"batch {number}": part.forward(x, x.shape) for number, x in enumerate(batches)}
    return found | {"evaluation": part.forward(held_out, held_out.shape, training=False)}


def norm_gradients(part, x, upstream):
    """Gradients by the input, and by scale and shift through what a step along them changes."""
    before = part.forward(x, x.shape)
    by_input = part.backward(upstream, x.shape)
    parameters, gradients = part.arrays("parameters"), part.arrays("gradients")
    part.fill("parameters", [p - STEP * g for p, g in zip(parameters, gradients, strict=True)])
    after = part.forward(x, x.shape)
    part.fill("parameters", parameters)
    return {"input": by_input, "scale and shift": (before - after) / STEP}


def same(found, expected, tolerance=1e-4):
    """Whether two results of a scenario are the same."""
    return all(
        found[name].shape == value.shape
        and bool(np.allclose(found[name], value, rtol=tolerance, atol=tolerance * (1 + np.abs(value).max())))
        for name, value in expected.items()
    )


def others(found, expected, tolerance=1e-4):
    """The names of what is not the same."""
    return [name for name in expected if not same({name: found[name]}, {name: expected[name]}, tolerance)]


def with_correction(norm):
    """BatchNorm whose running variance has Bessel's correction."""

    class Corrected(norm):
        def forward(self, x, training=True):
            before = self.running_variance.copy()
            output = super().forward(x, training)
            if training:
                variance = x.var(axis=0, ddof=1)
                self.running_variance[...] = (1 - self.momentum) * before + self.momentum * variance
            return output

    return Corrected


def swapped(norm):
    """BatchNorm whose parameters are in the other order."""

    class Swapped(norm):
        def parameters(self):
            return super().parameters()[::-1]

        def gradients(self):
            return super().gradients()[::-1]

    return Swapped
