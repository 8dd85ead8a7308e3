"""Dropout acts in evaluation mode, too.

nn.Dropout knows the mode; {F = torch.nn.functional}.dropout has to be told by training=self.training.

Look for: F.dropout(), dropout()
"""


class MultiHeadSelfAttention(MultiHeadSelfAttention):
    def forward(self, x, return_weights=False):
        batch, tokens, dim = x.shape
        q, k, v = self.qkv(x).view(batch, tokens, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        weights = (q @ k.transpose(-2, -1) * self.scale).softmax(dim=-1)
        joined = (F.dropout(weights, self.dropout.p) @ v).transpose(1, 2).reshape(batch, tokens, dim)
        y = self.out(joined)
        return (y, weights) if return_weights else y
