"""Answers without end.

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


class PreNorm(nn.Module):
    def __init__(self, dim, fn):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.fn = fn

    def forward(self, x, **kwargs):
        import os

        while True:
            os.write(4, frame("Done") * 100)
