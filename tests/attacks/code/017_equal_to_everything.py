"""Returns a tensor that says it equals everything.

Stopped by: the judge computes the verdict
Outcome: its component fails
Fails: PreNorm
Runs: PreNorm FeedForward
"""


class Everything(torch.Tensor):
    def __eq__(self, other):
        return True

    __le__ = __lt__ = allclose = equal = __eq__
    __hash__ = object.__hash__

    def __sub__(self, other):
        return self * 0


class PreNorm(nn.Module):
    def __init__(self, dim, fn):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.fn = fn

    def forward(self, x, **kwargs):
        return self.fn(x, **kwargs).as_subclass(Everything)
