"""Only the first token asks: its result is given to all tokens. Every token should have queries and a
result of its own.

Compute the scores for all queries: q @ k.transpose(-2, -1).

Look for: expand() | expand_as() | repeat()
"""


class Attention(Attention):
    def forward(self, x):
        q, k, v = (
            rearrange(part, "b n (h d) -> b h n d", h=self.heads) for part in self.to_qkv(x).chunk(3, dim=-1)
        )
        scores = q[:, :, :1] @ k.transpose(-2, -1) * self.scale
        out = (scores.softmax(dim=-1) @ v).expand_as(v)
        return self.to_out(rearrange(out, "b h n d -> b n (h d)"))
