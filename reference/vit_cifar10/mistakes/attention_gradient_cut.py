"""The weights are cut off from the gradients: only the values and the output projection are trained; queries
and keys stay as they were initialized.

Leave out detach(), .data and torch.no_grad().

Look for: detach() | no_grad() | _.data
"""


class MultiHeadSelfAttention(MultiHeadSelfAttention):
    def forward(self, x, return_weights=False):
        batch, tokens, dim = x.shape
        q, k, v = self.qkv(x).view(batch, tokens, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        weights = (q @ k.transpose(-2, -1) * self.scale).softmax(dim=-1)
        joined = (self.dropout(weights.detach()) @ v).transpose(1, 2).reshape(batch, tokens, dim)
        y = self.out(joined)
        return (y, weights) if return_weights else y
