"""A mask hides the tokens that come later: a token looks only at itself and those before it. That is for
generating text; an image has no such order, and every token should look at all of them.

Leave the mask out: no tril, and no is_causal=True.

Look for: is_causal, tril() | triu(), masked_fill() | masked_fill_()
"""


class Attention(Attention):
    def forward(self, x):
        q, k, v = (
            rearrange(part, "b n (h d) -> b h n d", h=self.heads) for part in self.to_qkv(x).chunk(3, dim=-1)
        )
        n = x.shape[1]
        hidden = torch.ones(n, n, dtype=torch.bool).triu(1)
        scores = q @ k.transpose(-2, -1) * self.scale
        out = scores.masked_fill(hidden, float("-inf")).softmax(dim=-1) @ v
        return self.to_out(rearrange(out, "b h n d -> b n (h d)"))
