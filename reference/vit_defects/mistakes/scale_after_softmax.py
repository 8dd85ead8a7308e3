"""The scale is applied after the softmax instead of before it, which only shrinks the result. The formula is
softmax(q k^T / sqrt(dim_head)) v.

Scale the scores first, then apply the softmax.

Look for: softmax() * _ | softmax() / _, softmax()
"""


class Attention(Attention):
    def forward(self, x):
        q, k, v = (
            rearrange(part, "b n (h d) -> b h n d", h=self.heads) for part in self.to_qkv(x).chunk(3, dim=-1)
        )
        weights = (q @ k.transpose(-2, -1)).softmax(dim=-1) * self.scale
        return self.to_out(rearrange(weights @ v, "b h n d -> b n (h d)"))
