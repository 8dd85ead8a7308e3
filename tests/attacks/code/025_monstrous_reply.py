"""Announces a reply of terabytes, and arrays that overlap.

Stopped by: replies are decoded as hostile
Outcome: its component fails
Fails: PreNorm
Says: wrote something of its own
Runs: PreNorm FeedForward
"""


class PreNorm(nn.Module):
    def __init__(self, dim, fn):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.fn = fn

    def forward(self, x, **kwargs):
        import os, struct

        text = b'{"$kind": "Called", "result": "tensor", "$arrays": [{"name": "output", "dtype": "float32", "shape": [1099511627775, 8]}]}'
        os.write(4, struct.pack("<4sIQ", b"GRF1", len(text), 2**62) + text)
        return self.fn(x, **kwargs)
