"""What is returned as weights are the scores before the softmax.

Look for: return
"""


class MultiHeadSelfAttention(MultiHeadSelfAttention):
    def forward(self, x, return_weights=False):
        batch, tokens, dim = x.shape
        q, k, v = self.qkv(x).view(batch, tokens, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        weights = (q @ k.transpose(-2, -1) * self.scale).softmax(dim=-1)
        joined = (self.dropout(weights) @ v).transpose(1, 2).reshape(batch, tokens, dim)
        y = self.out(joined)
        return (y, q @ k.transpose(-2, -1) * self.scale) if return_weights else y
