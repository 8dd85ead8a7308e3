"""The table of sines and cosines is a parameter that learns; with positions='sinusoidal' it should stay as
it is.

A buffer does not learn: self.register_buffer.
"""


class VisionTransformer(VisionTransformer):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        if "positions" in dict(self.named_buffers()):
            fixed = self.positions
            del self.positions
            self.positions = nn.Parameter(fixed)
