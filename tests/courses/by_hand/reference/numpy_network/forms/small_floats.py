"""Everything is computed in float32."""


class Linear:
    def __init__(self, inputs, outputs, seed=0):
        random = np.random.default_rng(seed)
        self.weight = random.normal(size=(inputs, outputs)).astype(np.float32)
        self.bias = random.normal(size=outputs).astype(np.float32)

    def forward(self, x, training=True):
        self.x = np.asarray(x, dtype=np.float32)
        return self.x @ self.weight + self.bias

    def backward(self, upstream):
        upstream = np.asarray(upstream, dtype=np.float32)
        self.grads = self.x.T @ upstream, upstream.sum(axis=0)
        return upstream @ self.weight.T

    def parameters(self):
        return [self.weight, self.bias]

    def gradients(self):
        return list(self.grads)
