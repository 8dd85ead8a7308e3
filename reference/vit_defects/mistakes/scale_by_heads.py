"""The scores are divided by the square root of the number of heads. Their size grows with dim_head, the
length of the sums in q k^T: the formula divides by sqrt(dim_head).

Use dim_head ** -0.5 as the scale.

Look for: _ ** -0.5 | _ ** 0.5 | sqrt() | rsqrt(), scale
"""


class Attention(Attention):
    def forward(self, x):
        q, k, v = (
            rearrange(part, "b n (h d) -> b h n d", h=self.heads) for part in self.to_qkv(x).chunk(3, dim=-1)
        )
        scores = q @ k.transpose(-2, -1) * self.heads**-0.5
        out = scores.softmax(dim=-1) @ v
        return self.to_out(rearrange(out, "b h n d -> b n (h d)"))
