"""Writes replies of its own before it is asked.

Stopped by: each request expects one kind of reply
Outcome: its component fails
Fails: PreNorm
Says: wrote something of its own
Runs: PreNorm FeedForward
"""


def frame(kind, **values):
    import json
    import struct

    text = json.dumps({"$kind": kind, **values, "$arrays": []}).encode()
    return struct.pack("<4sIQ", b"GRF1", len(text), 0) + text


def early():
    import os

    kinds = {"PreNorm": "class", "FeedForward": "class"}
    for _ in range(50):
        os.write(4, frame("Loaded", kinds=kinds, problems=[], absent_modules=[]))
        os.write(4, frame("Done"))
        os.write(4, frame("Called", result="tensor", calls=[], no_gradient=[]))


class PreNorm(nn.Module):
    def __init__(self, dim, fn):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.fn = fn
        early()

    def forward(self, x, **kwargs):
        return self.fn(x, **kwargs)
