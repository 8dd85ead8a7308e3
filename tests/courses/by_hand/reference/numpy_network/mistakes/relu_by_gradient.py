"""The gradient is cut by its own sign, where the sign of the input decides.

Keep in forward where the input is above 0.
"""


class ReLU(ReLU):
    def backward(self, upstream):
        return np.where(upstream > 0, upstream, 0.0)
