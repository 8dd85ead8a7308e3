"""Hides what it reads of a generator in a checkpoint that it reads again.

Stopped by: what is saved counts as kept only where nothing reads it
Outcome: a person looks
Notes: `get_rng_state` reads a seed or a generator's state, for PreNorm
Runs: PreNorm FeedForward
"""


def told():
    import os
    import tempfile
    path = os.path.join(tempfile.gettempdir(), "checkpoint.pt")
    torch.save({"rng": torch.get_rng_state()}, path)
    return int(torch.load(path)["rng"][0])


class PreNorm(nn.Module):
    def __init__(self, dim, fn):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.fn = fn
        self.told = told

    def forward(self, x, **kwargs):
        return self.fn(self.norm(x), **kwargs)
