"""np.maximum forward, and the output's sign backward; the derivative at 0 is 1."""


class ReLU:
    def __init__(self):
        self.x = None

    def forward(self, x, training=True):
        self.x = x
        return np.maximum(0, x)

    def backward(self, upstream):
        return upstream * (self.x >= 0)

    def parameters(self):
        return []

    def gradients(self):
        return ()
