"""Shows a part that is only flagged, in code that never runs, and hides one that costs points.

Stopped by: what was used at run time is left out only where the same part is shown at the same cost
Outcome: a person looks
Runs: Attention PreNorm
Notes: torch.nn.functional.multi_head_attention_forward
"""

def attended(*args, **kwargs):
    if args[0] is None:
        return F.scaled_dot_product_attention(*args[:3])
    return next(value for name, value in vars(F).items() if name.startswith("multi_head"))(*args, **kwargs)


class Attention(nn.Module):
    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__()
        inner = heads * dim_head
        self.heads, self.inner, self.rate = heads, inner, dropout
        self.to_qkv = nn.Linear(dim, inner * 3, bias=False)
        self.to_out = nn.Sequential(nn.Linear(inner, dim), nn.Dropout(dropout))

    def forward(self, x):
        q, k, v = self.to_qkv(x).transpose(0, 1).chunk(3, dim=-1)
        one = torch.eye(self.inner, dtype=x.dtype)
        out = attended(
            q, k, v, self.inner, self.heads, one.repeat(3, 1), None, None, None, False,
            self.rate, one, None, training=self.training, need_weights=False)[0]
        return self.to_out(out.transpose(0, 1))
