"""Uses PyTorch's own attention by names that it has elsewhere.

Stopped by: the source is searched under every name
Outcome: a person looks
Runs: Attention PreNorm
Notes: scaled_dot_product_attention
"""


class Attention(nn.Module):
    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__()
        self.heads = heads
        self.to_qkv, self.to_out = nn.Linear(dim, 3 * heads * dim_head), nn.Linear(heads * dim_head, dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        q, k, v = (
            rearrange(part, "b n (h d) -> b h n d", h=self.heads) for part in self.to_qkv(x).chunk(3, -1)
        )
        joined = torch.ops.aten.scaled_dot_product_attention(q, k, v)
        return self.dropout(self.to_out(rearrange(joined, "b h n d -> b n (h d)")))
