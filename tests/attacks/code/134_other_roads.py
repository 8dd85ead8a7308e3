"""Reaches a forbidden function through a module that imports its library.

Stopped by: a name is followed through the modules on its way
Outcome: a person looks
Runs: Attention PreNorm
Notes: scaled_dot_product_attention
"""


class Attention(nn.Module):
    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__()
        self.heads = heads
        self.to_qkv = nn.Linear(dim, 3 * heads * dim_head, bias=False)
        self.to_out = nn.Sequential(nn.Linear(heads * dim_head, dim), nn.Dropout(dropout))

    def forward(self, x):
        q, k, v = (
            rearrange(part, "b n (h d) -> b h n d", h=self.heads) for part in self.to_qkv(x).chunk(3, -1)
        )
        joined = F.torch._C._nn.scaled_dot_product_attention(q, k, v)
        return self.to_out(rearrange(joined, "b h n d -> b n (h d)"))
