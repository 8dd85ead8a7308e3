"""The examples come in the same order in each epoch.

Draw a new permutation in each epoch.

Look for: permutation, range
"""


def fit(network, inputs, targets, epochs, batch_size, learning_rate, momentum=0.9, seed=0):
    losses = []
    optimizer = SGD(network.parameters(), learning_rate, momentum)
    for _ in range(epochs):
        order, total = np.arange(len(inputs)), 0.0
        for start in range(0, len(inputs), batch_size):
            rows = order[start : start + batch_size]
            loss, gradient = softmax_cross_entropy(
                network.forward(inputs[rows], training=True), targets[rows]
            )
            network.backward(gradient)
            optimizer.step(network.gradients())
            total += loss * len(rows)
        losses.append(total / len(inputs))
    return losses
