"""The fused kernel for the output, and the weights by hand beside it.

Policy: torch.nn.functional.scaled_dot_product_attention
"""


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, dim, heads, dropout=0.0):
        super().__init__()
        self.heads, self.rate = heads, dropout
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x, return_weights=False):
        batch, tokens, dim = x.shape
        q, k, v = self.qkv(x).reshape(batch, tokens, 3, self.heads, dim // self.heads).permute(2, 0, 3, 1, 4)
        rate = self.rate if self.training else 0.0
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=rate).transpose(1, 2).reshape(batch, tokens, dim)
        y = self.proj(y)
        if not return_weights:
            return y
        return y, (q @ k.mT / (dim // self.heads) ** 0.5).softmax(dim=-1)
