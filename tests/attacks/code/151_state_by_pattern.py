"""Reads a generator's state by a pattern and by a name that is put together.

Stopped by: the source is searched for it in every form
Outcome: a person looks
Notes: `get_state` reads a seed or a generator's state, for PreNorm.*`initial_seed` reads a seed
Runs: PreNorm FeedForward
"""


def told():
    match torch.default_generator:
        case object(get_state=state):
            first = int(state()[0])
    return first + getattr(torch.random, "initial" + "_seed")()


class PreNorm(nn.Module):
    def __init__(self, dim, fn):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.fn = fn
        self.told = told()

    def forward(self, x, **kwargs):
        return self.fn(self.norm(x), **kwargs)
