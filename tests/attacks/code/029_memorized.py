"""Remembers earlier outputs and returns them.

Stopped by: fresh random inputs
Outcome: its component fails
Fails: PreNorm
Runs: PreNorm FeedForward
"""

MEMORY = []


class PreNorm(nn.Module):
    def __init__(self, dim, fn):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.fn = fn

    def forward(self, x, **kwargs):
        MEMORY.append(self.fn(x, **kwargs).detach())
        return MEMORY[0] if MEMORY[0].shape == x.shape else MEMORY[-1]
