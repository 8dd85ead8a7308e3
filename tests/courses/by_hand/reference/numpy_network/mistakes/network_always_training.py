"""forward does not pass `training` on: in evaluation the layers still use the batch.

layer.forward(x, training).

Look for: forward
"""


class Network(Network):
    def forward(self, x, training=True):
        return super().forward(x)
