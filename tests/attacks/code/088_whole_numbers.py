"""Keeps weights of a type that the judge cannot move, so that they stay zero.

Stopped by: only weights that the judge has moved are read
Outcome: its component fails
Fails: PreNorm FeedForward Attention
Runs: PreNorm FeedForward Attention evaluate
"""


def still(*shape):
    return nn.Parameter(torch.zeros(shape, dtype=torch.int64), requires_grad=False)


class PreNorm(nn.Module):
    def __init__(self, dim, fn):
        super().__init__()
        self.weight, self.bias = still(dim), still(dim)
        self.fn = fn

    def forward(self, x, **kwargs):
        return self.fn(0 * x, **kwargs)


class FeedForward(nn.Module):
    def __init__(self, dim, hidden_dim, dropout=0.0):
        super().__init__()
        self.first, self.second = nn.Linear(dim, hidden_dim), nn.Linear(hidden_dim, dim)
        self.second.weight = still(dim, hidden_dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        return self.dropout(self.second.bias + 0 * x)


class Attention(nn.Module):
    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__()
        self.to_qkv, self.to_out = nn.Linear(dim, 3 * heads * dim_head), nn.Linear(heads * dim_head, dim)
        self.to_out.weight = still(dim, heads * dim_head)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        return self.dropout(self.to_out.bias + 0 * x)
