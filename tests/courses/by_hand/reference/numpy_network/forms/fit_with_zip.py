"""The shuffled examples are cut by np.array_split points, and losses are weighted by size."""


def fit(network, inputs, targets, epochs, batch_size, learning_rate, momentum=0.9, seed=0):
    random = np.random.RandomState(seed)
    sgd = SGD(network.parameters(), learning_rate, momentum=momentum)
    history = []
    for epoch in range(epochs):
        order = np.arange(len(inputs))
        random.shuffle(order)
        parts = np.split(order, range(batch_size, len(order), batch_size))
        losses = []
        for part in parts:
            scores = network.forward(inputs[part])
            loss, gradient = softmax_cross_entropy(scores, targets[part])
            network.backward(gradient)
            sgd.step(network.gradients())
            losses.append(loss)
        history.append(np.average(losses, weights=[len(part) for part in parts]))
    return np.array(history)
