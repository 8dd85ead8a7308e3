"""Only the first token asks: the output has one token in place of as many as the input has. Every token's
query is compared with the keys of all tokens.

Use the queries of all tokens: q @ k.transpose(-2, -1) has the shape (batch, heads, tokens, tokens).

Look for: _[:, :, :1] | _[:, :, 0] | _[:, 0] | _[:, :1]
"""


class Attention(Attention):
    def forward(self, x):
        q, k, v = (
            rearrange(part, "b n (h d) -> b h n d", h=self.heads) for part in self.to_qkv(x).chunk(3, dim=-1)
        )
        weights = (q[:, :, :1] @ k.transpose(-2, -1) * self.scale).softmax(dim=-1)
        return self.to_out(rearrange(weights @ v, "b h n d -> b n (h d)"))
