"""The softmax runs over the heads (axis 1) instead of over the keys. Each token's weights for all tokens
that it looks at should sum to 1, in every head by itself.

Use softmax(dim=-1) on scores of shape (batch, heads, queries, keys).

Look for: softmax() | Softmax()
"""


class Attention(Attention):
    def forward(self, x):
        q, k, v = (
            rearrange(part, "b n (h d) -> b h n d", h=self.heads) for part in self.to_qkv(x).chunk(3, dim=-1)
        )
        scores = q @ k.transpose(-2, -1) * self.scale
        weights = scores.softmax(dim=1)
        return self.to_out(rearrange(weights @ v, "b h n d -> b n (h d)"))
