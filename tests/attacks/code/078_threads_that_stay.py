"""Starts threads that go on after the call and spoil what follows.

Stopped by: the worker is killed with all its threads
Outcome: its component fails
Fails: PreNorm
Runs: PreNorm FeedForward
"""


def spoil():
    import threading
    import time

    def endless():
        while True:
            time.sleep(0.01)

    for _ in range(10):
        threading.Thread(target=endless).start()


class PreNorm(nn.Module):
    def __init__(self, dim, fn):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.fn = fn
        spoil()

    def forward(self, x, **kwargs):
        return self.fn(x, **kwargs)
