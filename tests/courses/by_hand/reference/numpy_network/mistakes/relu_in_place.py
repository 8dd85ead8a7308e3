"""ReLU writes into the array that it is given.

Make a new array.
"""


class ReLU(ReLU):
    def forward(self, x, training=True):
        output = super().forward(x, training)
        x[x < 0] = 0
        return output
