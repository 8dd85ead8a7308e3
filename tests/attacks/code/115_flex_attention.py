"""Takes PyTorch's newest attention.

Stopped by: it is flagged as the others are
Outcome: a person looks
Runs: PreNorm
Notes: flex_attention
"""


from torch.nn.attention.flex_attention import flex_attention


class Attention(nn.Module):
    def __init__(self, dim, heads=4, dim_head=64, dropout=0.):
        super().__init__()
        inner = heads * dim_head
        self.heads = heads
        self.to_qkv = nn.Linear(dim, inner * 3, bias=False)
        self.to_out = nn.Sequential(nn.Linear(inner, dim), nn.Dropout(dropout))

    def forward(self, x):
        q, k, v = rearrange(self.to_qkv(x), "b n (c h d) -> c b h n d", c=3, h=self.heads)
        return self.to_out(rearrange(flex_attention(q, k, v), "b h n d -> b n (h d)"))
