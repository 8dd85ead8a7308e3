"""The weights are (outputs, inputs), as PyTorch stores them."""


class Linear:
    def __init__(self, inputs, outputs, seed=0):
        self.w = np.random.default_rng(seed).standard_normal((outputs, inputs)) / np.sqrt(inputs)
        self.b = np.zeros((1, outputs))

    def forward(self, x, training=True):
        self.cache = x
        return x.dot(self.w.T) + self.b

    def backward(self, upstream):
        self.dw = np.einsum("no,ni->oi", upstream, self.cache)
        self.db = upstream.sum(0, keepdims=True)
        return upstream.dot(self.w)

    def parameters(self):
        return [self.b, self.w]

    def gradients(self):
        return [self.db, self.dw]
