"""state leaves out the running statistics, on which the answers depend.

Add them to the parameters.
"""


class Network(Network):
    def state(self):
        return self.parameters()
