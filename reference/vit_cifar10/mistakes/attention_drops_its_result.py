"""What the attention returns is dropped in training, and none of its weights.

Look for: dropout()
"""


class MultiHeadSelfAttention(MultiHeadSelfAttention):
    def forward(self, x, return_weights=False):
        batch, tokens, dim = x.shape
        q, k, v = self.qkv(x).view(batch, tokens, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        weights = (q @ k.transpose(-2, -1) * self.scale).softmax(dim=-1)
        joined = (weights @ v).transpose(1, 2).reshape(batch, tokens, dim)
        y = self.dropout(self.out(joined))
        return (y, weights) if return_weights else y
