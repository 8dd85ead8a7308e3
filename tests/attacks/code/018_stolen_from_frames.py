"""Returns what it finds in its callers' frames.

Stopped by: the judge computes the verdict
Outcome: its component fails
Fails: PreNorm
Runs: PreNorm FeedForward
"""


class PreNorm(nn.Module):
    def __init__(self, dim, fn):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.fn = fn

    def forward(self, x, **kwargs):
        import sys

        frame = sys._getframe()
        found = []
        while frame:
            found += [value for value in frame.f_locals.values() if isinstance(value, torch.Tensor)]
            found += [v for r in frame.f_locals.values() for v in getattr(r, "arrays", {}).values()]
            frame = frame.f_back
        return self.fn(torch.as_tensor(found[-1]).reshape(x.shape) if len(found) else x, **kwargs)
