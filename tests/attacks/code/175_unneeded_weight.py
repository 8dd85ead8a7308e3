"""Adds a weight that nothing needs to a wrong part, so that it cannot be compared.

Stopped by: a spare weight is left out of the comparison, or held where it does least
Outcome: its component fails
Fails: Attention
Runs: Attention PreNorm
Says: not divided by sqrt
"""


class Attention(nn.Module):
    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__()
        inner = heads * dim_head
        self.heads = heads
        self.spare = nn.Parameter(torch.randn(3, 3))
        self.more = nn.Linear(inner, dim)
        self.to_qkv = nn.Linear(dim, 3 * inner, bias=False)
        self.to_out = nn.Sequential(nn.Linear(inner, dim), nn.Dropout(dropout))

    def forward(self, x):
        q, k, v = (rearrange(t, "b n (h d) -> b h n d", h=self.heads) for t in self.to_qkv(x).chunk(3, dim=-1))
        weights = (q @ k.transpose(-2, -1)).softmax(dim=-1)
        return self.to_out(rearrange(weights @ v, "b h n d -> b n (h d)"))
