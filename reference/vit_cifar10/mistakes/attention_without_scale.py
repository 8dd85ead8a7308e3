"""The scores are not divided by sqrt(dim / heads).

Without the scale the softmax is nearly one-hot for wide heads.

Look for: _ @ _.transpose() | _ @ _.mT | matmul(_, _.transpose()) | bmm(_, _.transpose()), softmax()
"""


class MultiHeadSelfAttention(MultiHeadSelfAttention):
    def forward(self, x, return_weights=False):
        batch, tokens, dim = x.shape
        q, k, v = self.qkv(x).view(batch, tokens, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        weights = (q @ k.transpose(-2, -1)).softmax(dim=-1)
        joined = (self.dropout(weights) @ v).transpose(1, 2).reshape(batch, tokens, dim)
        y = self.out(joined)
        return (y, weights) if return_weights else y
