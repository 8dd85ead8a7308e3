"""The softmax runs over blocks of keys, with a running maximum and a running sum."""


class Attention(nn.Module):
    def __init__(
        self,
        dim,
        heads=4,
        dim_head=64,
        dropout=0.0,
    ):
        super().__init__()
        self.heads = heads
        self.scale = dim_head**-0.5
        self.block = 5
        self.to_q, self.to_k, self.to_v = (nn.Linear(dim, heads * dim_head, bias=False) for _ in range(3))
        self.to_out = nn.Linear(heads * dim_head, dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        q, k, v = (
            rearrange(f(x), "b n (h d) -> b h n d", h=self.heads) for f in (self.to_q, self.to_k, self.to_v)
        )
        m = torch.full_like(q[..., :1], float("-inf"))
        denom = torch.zeros_like(m)
        acc = torch.zeros_like(q)
        for j in range(0, k.shape[2], self.block):
            kj, vj = k[:, :, j : j + self.block], v[:, :, j : j + self.block]
            s = self.scale * (q @ kj.transpose(-1, -2))
            new_m = torch.maximum(m, s.max(dim=-1, keepdim=True).values)
            p = torch.exp(s - new_m)
            corr = torch.exp(m - new_m)
            denom = denom * corr + p.sum(-1, keepdim=True)
            acc = acc * corr + p @ vj
            m = new_m
        return self.dropout(self.to_out(rearrange(acc / denom, "b h n d -> b n (h d)")))
