"""Attention with a loop over heads, each with layers of its own."""


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, dim, heads, dropout=0.0):
        super().__init__()
        self.size = dim // heads
        self.queries = nn.ModuleList([nn.Linear(dim, self.size) for _ in range(heads)])
        self.keys = nn.ModuleList([nn.Linear(dim, self.size) for _ in range(heads)])
        self.values = nn.ModuleList([nn.Linear(dim, self.size) for _ in range(heads)])
        self.last = nn.Linear(dim, dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, return_weights=False):
        outputs, weights = [], []
        for query, key, value in zip(self.queries, self.keys, self.values, strict=True):
            own = (query(x) @ key(x).transpose(1, 2) * self.size**-0.5).softmax(-1)
            weights.append(own)
            outputs.append(self.dropout(own) @ value(x))
        y = self.last(torch.cat(outputs, dim=-1))
        return (y, torch.stack(weights, dim=1)) if return_weights else y
