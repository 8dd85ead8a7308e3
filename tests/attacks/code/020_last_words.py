"""Writes further replies when it is collected and at exit.

Stopped by: replies are decoded as hostile
Outcome: its component fails
Fails: PreNorm
Says: wrote something of its own
Runs: PreNorm FeedForward
"""


class Last:
    def __del__(self):
        import os

        os.write(4, b"GRF1" + bytes(12) + b"passed")


def words():
    import atexit

    atexit.register(Last().__del__)
    return Last()


class PreNorm(nn.Module):
    def __init__(self, dim, fn):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.fn = fn
        words()

    def forward(self, x, **kwargs):
        return self.fn(x, **kwargs)
