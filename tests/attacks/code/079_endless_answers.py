"""Returns generators and structures without end.

Stopped by: what is returned is bounded
Outcome: its component fails
Fails: evaluate PreNorm
Says: instead of a tensor
Runs: PreNorm FeedForward evaluate
"""


def evaluate(model, data_loader, loss_history):
    import itertools

    loop = []
    loop.extend([loop, itertools.count()])
    loss_history.extend(range(2_000_000))
    return [loop] * 1000, itertools.count()


class PreNorm(nn.Module):
    def __init__(self, dim, fn):
        super().__init__()

    def forward(self, x, **kwargs):
        while True:
            yield x
