"""Attention by einops, heads interleaved, and dropout after the projection, too."""


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, dim, heads, dropout=0.0):
        super().__init__()
        self.heads = heads
        self.to_qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.to_out = nn.Sequential(nn.Linear(dim, dim), nn.Dropout(dropout))
        self.attend_dropout = nn.Dropout(dropout)

    def forward(self, x, return_weights=False):
        from einops import rearrange

        q, k, v = rearrange(self.to_qkv(x), "b n (three d h) -> three b h n d", three=3, h=self.heads)
        scores = (q * q.shape[-1] ** -0.5) @ k.transpose(-1, -2)
        weights = scores.softmax(dim=-1)
        y = self.to_out(rearrange(self.attend_dropout(weights) @ v, "b h n d -> b n (d h)"))
        return (y, weights) if return_weights else y
