"""The fixed positions are an ordinary tensor: when the model moves to another device, they stay
behind.

A buffer moves: self.register_buffer.

Look for: sinusoidal_positions()
"""


class VisionTransformer(VisionTransformer):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        if "positions" in dict(self.named_buffers()):
            _, tokens, dim = self.positions.shape
            del self.positions
            self.positions = sinusoidal_positions(tokens, dim)[None]
