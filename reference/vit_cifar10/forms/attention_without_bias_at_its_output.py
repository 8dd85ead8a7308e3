"""Attention with three projections that have biases, and an output projection that has none."""


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, dim, heads, dropout=0.0):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v = (nn.Linear(dim, dim) for _ in range(3))
        self.proj = nn.Linear(dim, dim, bias=False)
        self.drop = nn.Dropout(dropout)

    def forward(self, x, return_weights=False):
        batch, tokens, _ = x.shape
        q, k, v = (
            layer(x).view(batch, tokens, self.heads, -1).transpose(1, 2)
            for layer in (self.q, self.k, self.v)
        )
        weights = (q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])).softmax(dim=-1)
        y = self.proj((self.drop(weights) @ v).transpose(1, 2).flatten(2))
        return (y, weights) if return_weights else y
