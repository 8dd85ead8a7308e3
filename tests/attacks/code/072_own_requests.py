"""Reads the requests that are meant for its worker.

Stopped by: the clock runs outside
Outcome: its component fails
Fails: PreNorm
Says: did not return within
Runs: PreNorm FeedForward
"""


class PreNorm(nn.Module):
    def __init__(self, dim, fn):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.fn = fn

    def forward(self, x, **kwargs):
        import os

        os.read(3, 1_000_000)
        return self.fn(x, **kwargs)
