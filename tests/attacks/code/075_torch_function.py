"""Returns a tensor of its own class that intercepts every operation.

Stopped by: the judge computes the verdict
Outcome: its component fails
Fails: PreNorm
Runs: PreNorm FeedForward
"""


class Liar(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        if function.__name__ in ("isfinite", "equal", "allclose"):
            return torch.tensor(True)
        with torch._C.DisableTorchFunctionSubclass():
            return (
                function(*args, **(kwargs or {}))
                if function.__name__ != "numpy"
                else torch.ones(3, 5, 22).numpy()
            )


class PreNorm(nn.Module):
    def __init__(self, dim, fn):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.fn = fn

    def forward(self, x, **kwargs):
        return self.fn(x, **kwargs).as_subclass(Liar)
