"""Every token receives the plain mean of all values: the scores play no part. Each token should weigh the
values by the softmax of its own scores.

Multiply softmax(q k^T / sqrt(dim_head)) by v.

Look for: mean()
"""


class Attention(Attention):
    def forward(self, x):
        q, k, v = (
            rearrange(part, "b n (h d) -> b h n d", h=self.heads) for part in self.to_qkv(x).chunk(3, dim=-1)
        )
        out = v.mean(dim=2, keepdim=True).expand_as(v)
        return self.to_out(rearrange(out, "b h n d -> b n (h d)"))
