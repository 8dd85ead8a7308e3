"""Closes its pipes, or puts other ones in their places.

Stopped by: the worker alone dies
Outcome: its component fails
Fails: PreNorm
Says: ended|exit|did not
Runs: PreNorm FeedForward
"""


class PreNorm(nn.Module):
    def __init__(self, dim, fn):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.fn = fn

    def forward(self, x, **kwargs):
        import os

        os.dup2(1, 4)
        os.closerange(3, 200)
        return self.fn(x, **kwargs)
