"""The scores are divided by their sum instead of going through a softmax: without the exponential, weights
can be negative and the largest score hardly stands out.

Use scores.softmax(dim=-1).

Look for: _ / _.sum() | sum()
"""


class Attention(Attention):
    def forward(self, x):
        q, k, v = (
            rearrange(part, "b n (h d) -> b h n d", h=self.heads) for part in self.to_qkv(x).chunk(3, dim=-1)
        )
        scores = q @ k.transpose(-2, -1) * self.scale
        out = scores / scores.abs().sum(dim=-1, keepdim=True) @ v
        return self.to_out(rearrange(out, "b h n d -> b n (h d)"))
