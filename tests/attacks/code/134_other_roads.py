"""Reaches a forbidden function through a module that imports its library.

Stopped by: a name is followed through the modules on its way
Outcome: a person looks
Runs: Attention PreNorm
Notes: torch.nn.functional.multi_head_attention_forward
"""

from operator import attrgetter


def attended(*args, **kwargs):
    F.torch._C._nn.scaled_dot_product_attention(*(part.transpose(0, 1) for part in args[:3]))
    return attrgetter("functional.multi_head_attention_forward")(F.torch.nn)(*args, **kwargs)


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
