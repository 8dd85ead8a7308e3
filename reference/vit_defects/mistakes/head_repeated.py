"""All heads are the same: the result of one head is repeated for all. Each head should have projections of
its own.

Compute every head from its own part of q, k and v.

Look for: repeat() | cat()
"""


class Attention(Attention):
    def forward(self, x):
        q, k, v = (
            rearrange(part, "b n (h d) -> b h n d", h=self.heads)[:, :1]
            for part in self.to_qkv(x).chunk(3, dim=-1)
        )
        out = (q @ k.transpose(-2, -1) * self.scale).softmax(dim=-1) @ v
        return self.to_out(rearrange(out.expand(-1, self.heads, -1, -1), "b h n d -> b n (h d)"))
