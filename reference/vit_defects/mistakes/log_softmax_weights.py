"""The values are weighted by the logarithms of the softmax: the weights are negative and do not sum to 1.

Use softmax, not log_softmax.

Look for: log_softmax() | LogSoftmax()
"""


class Attention(Attention):
    def forward(self, x):
        q, k, v = (
            rearrange(part, "b n (h d) -> b h n d", h=self.heads) for part in self.to_qkv(x).chunk(3, dim=-1)
        )
        scores = q @ k.transpose(-2, -1) * self.scale
        out = scores.log_softmax(dim=-1) @ v
        return self.to_out(rearrange(out, "b h n d -> b n (h d)"))
