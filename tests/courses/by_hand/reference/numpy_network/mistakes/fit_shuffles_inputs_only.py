"""The targets are not taken in the order of the inputs.

Take both by the same rows.

Look for: targets
"""


def fit(network, inputs, targets, epochs, batch_size, learning_rate, momentum=0.9, seed=0):
    random, losses = np.random.default_rng(seed), []
    optimizer = SGD(network.parameters(), learning_rate, momentum)
    for _ in range(epochs):
        order, total = random.permutation(len(inputs)), 0.0
        for start in range(0, len(inputs), batch_size):
            rows = order[start : start + batch_size]
            loss, gradient = softmax_cross_entropy(
                network.forward(inputs[rows], training=True), targets[start : start + batch_size]
            )
            network.backward(gradient)
            optimizer.step(network.gradients())
            total += loss * len(rows)
        losses.append(total / len(inputs))
    return losses
