"""The attention weights are applied to the keys instead of to the values. The formula is softmax(q k^T /
sqrt(dim_head)) v.

Multiply the weights by v.

Look for: _ @ k | matmul(_, k) | bmm(_, k)
"""


class Attention(Attention):
    def forward(self, x):
        q, k, v = (
            rearrange(part, "b n (h d) -> b h n d", h=self.heads) for part in self.to_qkv(x).chunk(3, dim=-1)
        )
        scores = q @ k.transpose(-2, -1) * self.scale
        weights = scores.softmax(dim=-1)
        return self.to_out(rearrange(weights @ k, "b h n d -> b n (h d)"))
