"""Rows read as (feature, head, three), heads joined as (feature, head)."""


class Attention(nn.Module):
    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__()
        self.heads, self.dim_head = heads, dim_head
        self.to_qkv = nn.Linear(dim, 3 * heads * dim_head)
        self.to_out = nn.Sequential(nn.Linear(heads * dim_head, dim), nn.Dropout(dropout))

    def forward(self, x):
        v, q, k = self.to_qkv(x).unflatten(-1, (self.dim_head, self.heads, 3)).permute(4, 0, 3, 1, 2)
        weights = torch.softmax(q @ k.mT / self.dim_head**0.5, dim=-1)
        return self.to_out((weights @ v).permute(0, 2, 3, 1).flatten(2))
