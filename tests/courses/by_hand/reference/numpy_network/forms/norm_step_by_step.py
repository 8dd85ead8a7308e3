"""The backward pass is written step by step along the graph."""


class BatchNorm:
    def __init__(self, features, momentum=0.1, eps=1e-5):
        self.momentum, self.eps = momentum, eps
        self.learned = [np.ones(features), np.zeros(features)]
        self.running = [np.zeros(features), np.ones(features)]

    def forward(self, x, training=True):
        mean, variance = self.running
        if training:
            mean, variance = x.mean(0), ((x - x.mean(0)) ** 2).mean(0)
            for kept, new in zip(self.running, (mean, variance)):
                kept[...] = kept * (1 - self.momentum) + new * self.momentum
        self.x, self.mean, self.deviation = x, mean, (variance + self.eps) ** 0.5
        return self.learned[0] * ((x - mean) / self.deviation) + self.learned[1]

    @property
    def running_mean(self):
        return self.running[0]

    @property
    def running_variance(self):
        return self.running[1]

    def backward(self, upstream):
        n, centered = len(self.x), self.x - self.mean
        self.learned_gradients = [(upstream * centered / self.deviation).sum(0), upstream.sum(0)]
        by_hat = upstream * self.learned[0]
        by_variance = (by_hat * centered).sum(0) * -0.5 * self.deviation**-3
        by_mean = -by_hat.sum(0) / self.deviation + by_variance * (-2 * centered).mean(0)
        return by_hat / self.deviation + by_variance * 2 * centered / n + by_mean / n

    def parameters(self):
        return self.learned

    def gradients(self):
        return self.learned_gradients
