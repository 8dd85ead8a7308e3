"""A class for one head, as many of them as there are heads in a ModuleList, results concatenated."""


class Head(nn.Module):
    def __init__(self, dim, dim_head):
        super().__init__()
        self.key = nn.Linear(dim, dim_head, bias=False)
        self.query = nn.Linear(dim, dim_head, bias=False)
        self.value = nn.Linear(dim, dim_head, bias=False)

    def forward(self, x):
        k, q, v = self.key(x), self.query(x), self.value(x)
        return F.softmax(q @ k.transpose(-2, -1) * k.shape[-1] ** -0.5, dim=-1) @ v


class Attention(nn.Module):
    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__()
        self.heads = nn.ModuleList([Head(dim, dim_head) for _ in range(heads)])
        self.proj = nn.Linear(heads * dim_head, dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        return self.dropout(self.proj(torch.cat([h(x) for h in self.heads], dim=-1)))
