"""The last batch of an epoch is dropped when it is smaller.

Let the range go to the number of examples.

Look for: range, len
"""


def fit(network, inputs, targets, epochs, batch_size, learning_rate, momentum=0.9, seed=0):
    random, losses = np.random.default_rng(seed), []
    optimizer = SGD(network.parameters(), learning_rate, momentum)
    for _ in range(epochs):
        order, total = random.permutation(len(inputs)), []
        for number in range(len(inputs) // batch_size):
            rows = order[number * batch_size : (number + 1) * batch_size]
            loss, gradient = softmax_cross_entropy(
                network.forward(inputs[rows], training=True), targets[rows]
            )
            network.backward(gradient)
            optimizer.step(network.gradients())
            total.append(loss)
        losses.append(float(np.mean(total)))
    return losses
