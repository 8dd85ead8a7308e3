"""Three ModuleLists with one small layer per head each, and a loop over the heads.

Policy: dropout_before_projection
"""

from math import sqrt


class Attention(nn.Module):
    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__()
        self.queries = nn.ModuleList([nn.Linear(dim, dim_head) for _ in range(heads)])
        self.keys = nn.ModuleList([nn.Linear(dim, dim_head) for _ in range(heads)])
        self.values = nn.ModuleList([nn.Linear(dim, dim_head) for _ in range(heads)])
        self.unify = nn.Linear(dim_head * heads, dim)
        self.drop = nn.Dropout(dropout)
        self.dim_head = dim_head

    def forward(self, x):
        results = []
        for to_q, to_k, to_v in zip(self.queries, self.keys, self.values):
            scores = torch.bmm(to_q(x), to_k(x).permute(0, 2, 1)) / sqrt(self.dim_head)
            results.append(torch.bmm(self.drop(scores.softmax(2)), to_v(x)))
        return self.unify(torch.cat(results, 2))
