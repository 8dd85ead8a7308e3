"""Queries, keys and values are split into dim_head heads of heads features each: the two sizes are exchanged.

There are heads heads, and dim_head is the width of one: rearrange(q, "b n (h d) -> b h n d", h=heads).

Look for: rearrange() | view() | reshape()
"""


class Attention(Attention):
    def forward(self, x):
        dim_head = self.to_qkv(x).shape[-1] // 3 // self.heads
        q, k, v = (
            rearrange(part, "b n (h d) -> b h n d", h=dim_head) for part in self.to_qkv(x).chunk(3, dim=-1)
        )
        out = (q @ k.transpose(-2, -1) * self.scale).softmax(dim=-1) @ v
        return self.to_out(rearrange(out, "b h n d -> b n (h d)"))
