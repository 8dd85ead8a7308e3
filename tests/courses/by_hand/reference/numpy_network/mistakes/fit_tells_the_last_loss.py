"""The loss of an epoch is that of its last batch.

Add up loss times batch size, and divide by the number of examples.

Look for: append
"""


def fit(network, inputs, targets, epochs, batch_size, learning_rate, momentum=0.9, seed=0):
    random, losses = np.random.default_rng(seed), []
    optimizer = SGD(network.parameters(), learning_rate, momentum)
    for _ in range(epochs):
        order, total = random.permutation(len(inputs)), 0.0
        for start in range(0, len(inputs), batch_size):
            rows = order[start : start + batch_size]
            loss, gradient = softmax_cross_entropy(
                network.forward(inputs[rows], training=True), targets[rows]
            )
            network.backward(gradient)
            optimizer.step(network.gradients())
            total += loss * len(rows)
        losses.append(loss)
    return losses
