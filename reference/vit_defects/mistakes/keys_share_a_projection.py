"""Queries and keys come from one shared projection, so that they are the same numbers. What a token asks for
and what it offers should be two different projections.

Give queries, keys and values a projection each: three layers nn.Linear(dim, heads * dim_head, bias=False), or
one with three times as many outputs, which are cut into three.

Look for: to_qk | qk | query_key, Linear()
"""


class Attention(Attention):
    def __init__(self, dim, heads=8, dim_head=16, dropout=0.0):
        super().__init__(dim, heads, dim_head, dropout)
        del self.to_qkv
        self.to_qk, self.to_v = (nn.Linear(dim, heads * dim_head, bias=False) for _ in range(2))

    def forward(self, x):
        shared = self.to_qk(x)
        q, k, v = (
            rearrange(part, "b n (h d) -> b h n d", h=self.heads) for part in (shared, shared, self.to_v(x))
        )
        scores = q @ k.transpose(-2, -1) * self.scale
        out = scores.softmax(dim=-1) @ v
        return self.to_out(rearrange(out, "b h n d -> b n (h d)"))
