"""The running variance has Bessel's correction, and shift comes before scale."""


class BatchNorm:
    def __init__(self, features, momentum=0.1, eps=1e-5):
        self.beta, self.gamma = np.zeros(features), np.ones(features)
        self.running_mean, self.running_variance = np.zeros(features), np.ones(features)
        self.momentum, self.eps = momentum, eps

    def forward(self, x, training=True):
        if training:
            mu, var = np.mean(x, 0), np.var(x, 0)
            n = len(x)
            self.running_mean = self.running_mean + self.momentum * (mu - self.running_mean)
            self.running_variance = self.running_variance + self.momentum * (
                var * n / (n - 1) - self.running_variance
            )
        else:
            mu, var = self.running_mean, self.running_variance
        self.inverse = 1 / np.sqrt(var + self.eps)
        self.hat = (x - mu) * self.inverse
        return self.gamma * self.hat + self.beta

    def backward(self, upstream):
        n = len(upstream)
        self.d_beta, self.d_gamma = upstream.sum(0), (upstream * self.hat).sum(0)
        total = n * upstream - self.d_beta - self.hat * self.d_gamma
        return self.gamma * self.inverse / n * total

    def parameters(self):
        return [self.beta, self.gamma]

    def gradients(self):
        return [self.d_beta, self.d_gamma]
