"""Comes back when it is collected, and raises there.

Stopped by: the judge computes the verdict
Outcome: its component fails
Fails: PreNorm
Runs: PreNorm FeedForward
"""

GRAVES = []


class Undead:
    def __del__(self):
        GRAVES.append(self)
        raise ValueError("undead")


class PreNorm(nn.Module):
    def __init__(self, dim, fn):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.fn = fn
        [Undead() for _ in range(1000)]

    def forward(self, x, **kwargs):
        return self.fn(x, **kwargs)
