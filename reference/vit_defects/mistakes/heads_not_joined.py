"""The heads are joined by a plain reshape while they are still an axis before the tokens, so that features
of different tokens get mixed. The head axis has to come after the token axis before the two are merged.

Use transpose(1, 2) before reshape(b, n, heads * dim_head).

Look for: (_ @ _).reshape() | (_ @ _).view(), reshape() | view()
"""


class Attention(Attention):
    def forward(self, x):
        q, k, v = (
            rearrange(part, "b n (h d) -> b h n d", h=self.heads) for part in self.to_qkv(x).chunk(3, dim=-1)
        )
        weights = (q @ k.transpose(-2, -1) * self.scale).softmax(dim=-1)
        joined = (weights @ v).reshape(x.shape[0], x.shape[1], -1)
        return self.to_out(joined)
