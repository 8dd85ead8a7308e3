"""Adds weights to wrong parts that cannot be read or set: sparse, without room of their own, or complex.

Stopped by: what cannot be compared in a part that is wrong without it is a failure
Outcome: its component fails
Fails: FeedForward PreNorm
Runs: FeedForward PreNorm evaluate
"""


class FeedForward(nn.Module):
    def __init__(self, dim, hidden_dim, dropout=0.0):
        super().__init__()
        self.spare = nn.Parameter(torch.zeros(3, 3).to_sparse())
        self.one = nn.Parameter(torch.zeros(1).expand(100, 100))
        self.net = nn.Sequential(nn.Linear(dim, hidden_dim), nn.Linear(hidden_dim, dim))

    def forward(self, x):
        return self.net(x)


class PreNorm(nn.Module):
    def __init__(self, dim, fn):
        super().__init__()
        self.register_parameter("a b", nn.Parameter(torch.zeros(3, dtype=torch.complex64)))
        self.gain = nn.Parameter(torch.ones(4, 4))
        self.norm = nn.LayerNorm(dim)
        self.fn = fn

    def forward(self, x, **kwargs):
        return self.norm(self.fn(x, **kwargs)) * self.gain.mean()
