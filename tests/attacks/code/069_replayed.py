"""Replays its first answer to everything that it is asked.

Stopped by: the judge computes the verdict
Outcome: its component fails
Fails: PreNorm
Runs: PreNorm
"""


def replay():
    import sys

    service = sys.modules["grader.worker.service"]
    real, first = service.send, {}

    def send(writer, message):
        real(writer, first.setdefault(type(message), message))

    service.send = send


class PreNorm(nn.Module):
    def __init__(self, dim, fn):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.fn = fn
        replay()

    def forward(self, x, **kwargs):
        return self.fn(x, **kwargs)
