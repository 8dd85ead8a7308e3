"""The step makes new arrays, so that the network's own stay as they are.

Change them in place: parameter -= ...
"""


class SGD(SGD):
    def __init__(self, parameters, learning_rate, momentum=0.0):
        super().__init__([parameter.copy() for parameter in parameters], learning_rate, momentum)
