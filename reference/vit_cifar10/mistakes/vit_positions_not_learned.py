"""With positions='learned' the positions are not a parameter, so that they never learn.

nn.Parameter
"""


class VisionTransformer(VisionTransformer):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        if "positions" in dict(self.named_parameters()):
            kept = self.positions.detach()
            del self.positions
            self.register_buffer("positions", kept)
