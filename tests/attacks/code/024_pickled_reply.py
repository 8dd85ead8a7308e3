"""Answers with a pickle and with an array of objects.

Stopped by: replies are decoded as hostile
Outcome: its component fails
Fails: PreNorm
Says: wrote something of its own
Runs: PreNorm FeedForward
"""


class PreNorm(nn.Module):
    def __init__(self, dim, fn):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.fn = fn

    def forward(self, x, **kwargs):
        import io, os, pickle
        import numpy as np

        stream = io.BytesIO()
        np.save(stream, np.array([object]), allow_pickle=True)
        os.write(4, pickle.dumps({"status": "passed"}) + stream.getvalue())
        return self.fn(x, **kwargs)
