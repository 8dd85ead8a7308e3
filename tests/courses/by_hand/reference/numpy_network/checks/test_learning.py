"""Loss, optimizer, network and training, each by itself."""

import numpy as np
import pytest

from grader.kit import Fake, FakeObject, Mismatch

HUGE = np.array([[1000.0, 0.0, -1000.0], [-800.0, 900.0, 0.0]])


def numbers(student, *shape):
    return student.tensor(*shape, double=True).numpy()


@pytest.mark.component("softmax_cross_entropy")
@pytest.mark.weight(2)
def test_loss_and_gradient(student, reference):
    """The loss is the mean negative log-likelihood, and the gradient is its own."""
    oracle, scores, labels = reference.oracle, 2 * numbers(student, 7, 4), np.array([0, 3, 1, 1, 2, 0, 3])
    outcome = student.call("softmax_cross_entropy", scores, labels)
    loss, gradient = outcome.returned.items(2, "values: the loss and its gradient")
    found = {"loss": np.array([loss.number()]), "gradient": gradient.array(7, 4)}

    def result(function):
        loss, gradient = function(scores.copy(), labels)
        return {"loss": np.array([loss]), "gradient": np.asarray(gradient)}

    if not oracle.same(found, result(reference.softmax_cross_entropy)):
        for mistake in reference.mistakes_of("softmax_cross_entropy"):
            if oracle.same(found, result(mistake.namespace["softmax_cross_entropy"])):
                raise reference.named(mistake.id)
        wrong = " and ".join(oracle.others(found, result(reference.softmax_cross_entropy)))
        raise Mismatch(f"The {wrong} of softmax_cross_entropy is another one.")
    if not np.array_equal(outcome.args[0].array(7, 4), scores):
        raise Mismatch("softmax_cross_entropy changes the scores that it is given.", hint="Work on a copy.")


@pytest.mark.component("softmax_cross_entropy")
@pytest.mark.because("loss_and_gradient")
def test_loss_of_large_scores(student, reference):
    """Scores in the thousands neither overflow nor give infinite losses."""
    returned = student.call("softmax_cross_entropy", HUGE, np.array([0, 1])).returned
    loss, gradient = returned.items(2, "values: the loss and its gradient")
    if not (np.isfinite(loss.number(finite=False)) and np.isfinite(gradient.array(2, 3, finite=False)).all()):
        raise reference.named("loss_overflows")
    if abs(loss.number()) > 1e-6 or np.abs(gradient.array()).max() > 1e-6:
        raise Mismatch("For scores that are right by a thousand, loss and gradient should be 0.")


@pytest.mark.component("SGD")
@pytest.mark.weight(2)
def test_sgd_has_momentum(student, reference):
    """Over several steps, SGD's velocity keeps a share of the gradients before."""
    start = [numbers(student, 3), numbers(student, 2, 2)]
    steps = [[numbers(student, 3), numbers(student, 2, 2)] for _ in range(4)]

    def result(made):
        parameters = [array.copy() for array in start]
        optimizer = made(parameters, 0.1, 0.8)
        for gradients in steps:
            optimizer.step([gradient.copy() for gradient in gradients])
        return {str(number): array for number, array in enumerate(parameters)}

    kept = student.keep(start, "SGD")
    optimizer = student.make("SGD", kept, 0.1, momentum=0.8)
    for gradients in steps:
        optimizer.call("step", gradients)
    arrays = [value.array() for value in kept.get("").items(2)]
    found = {str(number): array for number, array in enumerate(arrays)}
    if reference.oracle.same(found, result(reference.SGD)):
        return
    for mistake in reference.mistakes_of("SGD"):
        if reference.oracle.same(found, result(mistake.namespace["SGD"])):
            raise reference.named(mistake.id)
    raise Mismatch("After four steps with momentum 0.8 the parameters are not where they should be.")


def composed(layers, x, upstream):
    """What the network's own layers give one after the other, and backward."""
    for layer, shape in zip(layers, ((6, 5), (6, 5), (6, 5), (6, 4), (6, 4), (6, 4), (6, 3)), strict=True):
        x = layer.call("forward", x, training=True).returned.array(*shape)
    shapes = ((6, 2), (6, 5), (6, 5), (6, 5), (6, 4), (6, 4), (6, 4))
    for layer, shape in zip(reversed(layers), reversed(shapes), strict=True):
        upstream = layer.call("backward", upstream).returned.array(*shape)
    return x, upstream


@pytest.mark.component("Network")
@pytest.mark.weight(2)
def test_network_goes_through_its_layers(student, reference):
    """Network's output and gradients are those of its layers, one after the other."""
    network = student.make("Network", [2, 5, 4, 3], seed=3)
    layers = [each.thing() for each in network.get("layers").items(7, "layers")]
    x, upstream = numbers(student, 6, 2), numbers(student, 6, 3)
    output = network.call("forward", x, training=True).returned.array(6, 3)
    by_input = network.call("backward", upstream).returned.array(6, 2)
    gradients = [each.array() for each in network.call("gradients").returned.items()]
    # before its layers are asked again: whether they add up is their own affair
    own = [each.array() for layer in layers for each in layer.call("gradients").returned.items()]
    expected, expected_by_input = composed(layers, x, upstream)
    if not np.allclose(output, expected, atol=1e-5):
        raise Mismatch("Network's output is not that of its layers in their order.")
    if not np.allclose(by_input, expected_by_input, atol=1e-5):
        raise reference.named("network_backward_forward")
    if len(own) != len(gradients):
        raise reference.named("network_first_layer_only")
    pairs = list(zip(own, gradients, strict=True))
    if not all(a.shape == b.shape and np.allclose(a, b, atol=1e-5) for a, b in pairs):
        raise Mismatch("Network's gradients are not those of its layers in their order.")


@pytest.mark.component("Network")
@pytest.mark.because("network_goes_through_its_layers")
def test_network_passes_the_mode_on(student, reference):
    """In evaluation, Network's output is that of its layers in evaluation."""
    network, x = student.make("Network", [2, 5, 3], seed=1), numbers(student, 6, 2)
    layers = [each.thing() for each in network.get("layers").items(4, "layers")]
    network.call("forward", x, training=True)
    expected = x
    for layer, width in zip(layers, (5, 5, 5, 3), strict=True):
        expected = layer.call("forward", expected, training=False).returned.array(6, width)
    if not np.allclose(network.call("forward", x, training=False).returned.array(6, 3), expected, atol=1e-5):
        raise reference.named("network_always_training")


@pytest.mark.component("Network")
@pytest.mark.because("network_goes_through_its_layers", "network_passes_the_mode_on")
def test_networks_state_is_whole(student, reference):
    """What state gives is all that the answers depend on, running statistics too."""
    one, other = (student.make("Network", [2, 5, 3], seed=seed) for seed in (1, 2))
    x = numbers(student, 6, 2)
    for number in range(3):
        one.call("forward", x * (2 + number), training=True)
    other.fill("state", [each.array() for each in one.call("state").returned.items()])
    answers = [each.call("forward", x, training=False).returned.array(6, 3) for each in (one, other)]
    if not np.allclose(*answers, atol=1e-5):
        raise reference.named("network_state_without_statistics")


def watched_network(calls, gradient):
    """A network that tells how it is used: (what, arguments)."""

    def forward(x, training=None):
        calls.append(("forward", np.asarray(x), training))
        return np.zeros((len(x), 2))

    def noted(name, answer):
        def call(*arguments):
            calls.append((name, *arguments))
            return answer

        return Fake.callback(call, kind="function", name=name)

    return FakeObject(
        forward=Fake.callback(forward, kind="function", name="forward"),
        backward=noted("backward", gradient),
        parameters=noted("parameters", [np.zeros(2)]),
        gradients=noted("gradients", [np.ones(2)]),
    )


@pytest.mark.component("fit")
@pytest.mark.weight(3)
def test_fit_uses_all_examples(student, reference):
    """In each epoch, fit takes every example once, in an order of its own, with its target."""
    calls, inputs = [], np.arange(22.0).reshape(11, 2)
    targets = np.arange(11) % 2

    script = Fake.script([(1.0 + number, np.zeros((4, 2))) for number in range(9)], kind="function")
    outcome = student.call(
        "fit", watched_network(calls, np.zeros((1, 2))), inputs, targets, 3, 4, 0.1, seed=5,
        replace={"softmax_cross_entropy": script},
    )  # fmt: skip
    batches = [call for call in calls if call[0] == "forward"]
    rows = [(batch[1][:, 0] / 2).round().astype(int) for batch in batches]
    if sum(map(len, rows)) == 3 * 8:
        raise reference.named("fit_drops_the_last_batch")
    epochs, seen = [], []
    for each in rows:
        seen.extend(each)
        if len(seen) >= 11:
            epochs.append(seen[:11])
            seen = seen[11:]
    if len(epochs) != 3 or any(sorted(epoch) != list(range(11)) for epoch in epochs):
        raise Mismatch("In three epochs over 11 examples, fit does not take each example three times.")
    if epochs[0] == epochs[1] or epochs[0] == list(range(11)):
        raise reference.named("fit_never_shuffles")
    if any(batch[2] is False for batch in batches):
        raise reference.named("fit_in_evaluation_mode")
    labels = [call.args[1] for call in outcome.calls_of("softmax_cross_entropy")]
    if any(not np.array_equal(np.asarray(own), targets[row]) for own, row in zip(labels, rows, strict=True)):
        raise reference.named("fit_shuffles_inputs_only")
    losses = [each.number() for each in outcome.returned.items(3, "losses")]
    expected = [(4 * (3 * e + 1) + 4 * (3 * e + 2) + 3 * (3 * e + 3)) / 11 for e in range(3)]
    if np.allclose(losses, [3 * e + 3 for e in range(3)]):
        raise reference.named("fit_tells_the_last_loss")
    if not np.allclose(losses, expected):
        raise Mismatch("The losses that fit gives are not the means over all examples of an epoch.")


@pytest.mark.component("fit")
@pytest.mark.because("fit_uses_all_examples")
def test_fit_steps_along_fresh_gradients(student, reference):
    """For each batch: forward, backward with the loss's gradient, and then the gradients."""
    calls, gradient = [], np.full((4, 2), 0.25)
    script = Fake.script([(1.0, gradient)], kind="function")
    student.call(
        "fit", watched_network(calls, np.zeros((4, 2))), np.zeros((8, 2)), np.zeros(8, int), 1, 4, 0.1,
        replace={"softmax_cross_entropy": script},
    )  # fmt: skip
    order = [call[0] for call in calls if call[0] != "parameters"]
    if order == ["forward", "gradients", "backward"] * 2:
        raise reference.named("fit_steps_before_backward")
    if order != ["forward", "backward", "gradients"] * 2:
        raise Mismatch(f"For two batches fit calls {', '.join(order)}.")
    if not all(np.allclose(np.asarray(call[1]), gradient) for call in calls if call[0] == "backward"):
        raise Mismatch("backward is not given the gradient that softmax_cross_entropy returned.")
