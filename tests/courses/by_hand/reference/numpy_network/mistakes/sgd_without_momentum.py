"""The velocity keeps nothing of the steps before.

v = momentum * v + gradient, with v kept between steps.
"""


class SGD(SGD):
    def __init__(self, parameters, learning_rate, momentum=0.0):
        super().__init__(parameters, learning_rate, 0.0)
