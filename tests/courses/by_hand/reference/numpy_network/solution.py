# %% [markdown]
# # A network by hand
# Every layer computes its output and, from the gradient by that, its gradients. Use numpy alone.

# %%
import numpy as np

# %% [markdown]
# ## Layers


# %%
class Linear:
    """`x W + b` of x (n, inputs)."""

    def __init__(self, inputs, outputs, seed=0):
        # >>> TODO Linear.__init__: draw the weights by the seed
        random = np.random.default_rng(seed)
        self.weight = random.normal(0, np.sqrt(2 / inputs), (inputs, outputs))
        self.bias = np.zeros(outputs)
        # <<<

    def forward(self, x, training=True):
        # >>> TODO Linear.forward: the output of the batch
        self.x = x
        return x @ self.weight + self.bias
        # <<<

    def backward(self, upstream):
        # >>> TODO Linear.backward: the gradient by the last input
        self.weight_gradient = self.x.T @ upstream
        self.bias_gradient = upstream.sum(axis=0)
        return upstream @ self.weight.T
        # <<<

    def parameters(self):
        # >>> TODO Linear.parameters: the arrays that are learned
        return [self.weight, self.bias]
        # <<<

    def gradients(self):
        # >>> TODO Linear.gradients: their gradients, in the same order
        return [self.weight_gradient, self.bias_gradient]
        # <<<


# %%
class ReLU:
    """What is above 0."""

    def __init__(self):
        # >>> TODO ReLU.__init__: what is kept between forward and backward
        self.positive = None
        # <<<

    def forward(self, x, training=True):
        # >>> TODO ReLU.forward: the output of the batch
        self.positive = x > 0
        return np.where(self.positive, x, 0.0)
        # <<<

    def backward(self, upstream):
        # >>> TODO ReLU.backward: the gradient by the last input
        return np.where(self.positive, upstream, 0.0)
        # <<<

    def parameters(self):
        # >>> TODO ReLU.parameters: the arrays that are learned
        return []
        # <<<

    def gradients(self):
        # >>> TODO ReLU.gradients: their gradients, in the same order
        return []
        # <<<


# %%
class BatchNorm:
    """Each feature of x (n, features) with mean 0 and variance 1, scaled and shifted."""

    def __init__(self, features, momentum=0.1, eps=1e-5):
        # >>> TODO BatchNorm.__init__: what is learned, and the running statistics
        self.momentum, self.eps = momentum, eps
        self.scale, self.shift = np.ones(features), np.zeros(features)
        self.running_mean, self.running_variance = np.zeros(features), np.ones(features)
        # <<<

    def forward(self, x, training=True):
        # >>> TODO BatchNorm.forward: the output of the batch
        if training:
            mean, variance = x.mean(axis=0), x.var(axis=0)
            self.running_mean *= 1 - self.momentum
            self.running_mean += self.momentum * mean
            self.running_variance *= 1 - self.momentum
            self.running_variance += self.momentum * variance
        else:
            mean, variance = self.running_mean, self.running_variance
        self.deviation = np.sqrt(variance + self.eps)
        self.normalized = (x - mean) / self.deviation
        return self.scale * self.normalized + self.shift
        # <<<

    def backward(self, upstream):
        # >>> TODO BatchNorm.backward: the statistics depend on x, too
        self.scale_gradient = (upstream * self.normalized).sum(axis=0)
        self.shift_gradient = upstream.sum(axis=0)
        by_normalized = upstream * self.scale
        centered = by_normalized - by_normalized.mean(axis=0)
        return (centered - self.normalized * (by_normalized * self.normalized).mean(axis=0)) / self.deviation
        # <<<

    def parameters(self):
        # >>> TODO BatchNorm.parameters: the arrays that are learned
        return [self.scale, self.shift]
        # <<<

    def gradients(self):
        # >>> TODO BatchNorm.gradients: their gradients, in the same order
        return [self.scale_gradient, self.shift_gradient]
        # <<<


# %% [markdown]
# ## Loss and optimizer


# %%
def softmax_cross_entropy(scores, labels):
    """The mean loss of scores (n, classes) for labels (n,), and its gradient by the scores."""
    # >>> TODO softmax_cross_entropy: the mean loss and its gradient by the scores
    shifted = scores - scores.max(axis=1, keepdims=True)
    log_probabilities = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    rows = np.arange(len(labels))
    gradient = np.exp(log_probabilities)
    gradient[rows, labels] -= 1
    return -log_probabilities[rows, labels].mean(), gradient / len(labels)
    # <<<


# %%
class SGD:
    """Stochastic gradient descent with momentum."""

    def __init__(self, parameters, learning_rate, momentum=0.0):
        # >>> TODO SGD.__init__: the velocities
        self.parameters, self.learning_rate, self.momentum = parameters, learning_rate, momentum
        self.velocities = [np.zeros_like(parameter) for parameter in parameters]
        # <<<

    def step(self, gradients):
        # >>> TODO SGD.step: change the arrays in place
        for parameter, velocity, gradient in zip(self.parameters, self.velocities, gradients, strict=True):
            velocity *= self.momentum
            velocity += gradient
            parameter -= self.learning_rate * velocity
        # <<<


# %% [markdown]
# ## The network


# %%
class Network:
    """Linear, BatchNorm and ReLU for each hidden size, and a last Linear."""

    def __init__(self, sizes, seed=0):
        # >>> TODO Network.__init__: self.layers
        self.layers = []
        for number, (inputs, outputs) in enumerate(zip(sizes[:-1], sizes[1:], strict=True)):
            self.layers.append(Linear(inputs, outputs, seed + number))
            if number < len(sizes) - 2:
                self.layers += [BatchNorm(outputs), ReLU()]
        # <<<

    def forward(self, x, training=True):
        # >>> TODO Network.forward: the output of the batch
        for layer in self.layers:
            x = layer.forward(x, training)
        return x
        # <<<

    def backward(self, upstream):
        # >>> TODO Network.backward: the gradient by the last input
        for layer in reversed(self.layers):
            upstream = layer.backward(upstream)
        return upstream
        # <<<

    def parameters(self):
        # >>> TODO Network.parameters: the arrays that are learned
        return [parameter for layer in self.layers for parameter in layer.parameters()]
        # <<<

    def gradients(self):
        # >>> TODO Network.gradients: their gradients, in the same order
        return [gradient for layer in self.layers for gradient in layer.gradients()]
        # <<<

    def state(self):
        # >>> TODO Network.state: all arrays that the answers depend on
        norms = [layer for layer in self.layers if isinstance(layer, BatchNorm)]
        running = [array for norm in norms for array in (norm.running_mean, norm.running_variance)]
        return self.parameters() + running
        # <<<


# %%
def fit(network, inputs, targets, epochs, batch_size, learning_rate, momentum=0.9, seed=0):
    """Train the network; the mean loss of each epoch."""
    # >>> TODO fit: train, and give the mean loss of each epoch
    random = np.random.default_rng(seed)
    optimizer = SGD(network.parameters(), learning_rate, momentum)
    losses = []
    for _ in range(epochs):
        order, total = random.permutation(len(inputs)), 0.0
        for start in range(0, len(order), batch_size):
            rows = order[start : start + batch_size]
            loss, gradient = softmax_cross_entropy(
                network.forward(inputs[rows], training=True), targets[rows]
            )
            network.backward(gradient)
            optimizer.step(network.gradients())
            total += loss * len(rows)
        losses.append(total / len(order))
    return losses
    # <<<


# %% [markdown]
# ## Try it

# %%
points = np.random.default_rng(1).normal(size=(300, 2))
labels = (points[:, 0] * points[:, 1] > 0).astype(int)
network = Network([2, 16, 2])
print(fit(network, points, labels, epochs=5, batch_size=32, learning_rate=0.05))
