"""The heads of one token look at each other instead of the tokens of one head: no information passes
between tokens. The scores should have the shape (batch, heads, tokens, tokens).

Move the axis of the heads in front of the tokens before q k^T: transpose(1, 2).

Look for: view() | reshape() | rearrange()
"""


class Attention(Attention):
    def forward(self, x):
        q, k, v = (
            rearrange(part, "b n (h d) -> b h n d", h=self.heads) for part in self.to_qkv(x).chunk(3, dim=-1)
        )
        q, k, v = (part.transpose(1, 2) for part in (q, k, v))
        scores = q @ k.transpose(-2, -1) * self.scale
        out = (scores.softmax(dim=-1) @ v).transpose(1, 2)
        return self.to_out(rearrange(out, "b h n d -> b n (h d)"))
