"""The softmax runs on the product of scores and values instead of on the scores: what comes out are shares,
not averages of the values.

First weights = scores.softmax(dim=-1), then weights @ v.

Look for: softmax() | Softmax()
"""


class Attention(Attention):
    def forward(self, x):
        q, k, v = (
            rearrange(part, "b n (h d) -> b h n d", h=self.heads) for part in self.to_qkv(x).chunk(3, dim=-1)
        )
        scores = q @ k.transpose(-2, -1) * self.scale
        out = (scores @ v).softmax(dim=-1)
        return self.to_out(rearrange(out, "b h n d -> b n (h d)"))
