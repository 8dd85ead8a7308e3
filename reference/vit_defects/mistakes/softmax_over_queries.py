"""The softmax runs over the queries instead of over the keys: what sums to 1 is a column of the attention
matrix, not a row. Each token's weights for all tokens that it looks at should sum to 1.

Use softmax(dim=-1) on scores of shape (batch, heads, queries, keys).

Look for: softmax() | Softmax()
"""


class Attention(Attention):
    def forward(self, x):
        q, k, v = (
            rearrange(part, "b n (h d) -> b h n d", h=self.heads) for part in self.to_qkv(x).chunk(3, dim=-1)
        )
        scores = q @ k.transpose(-2, -1) * self.scale
        weights = scores.softmax(dim=-2)
        return self.to_out(rearrange(weights @ v, "b h n d -> b n (h d)"))
