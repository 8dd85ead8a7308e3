"""Attention with bare parameters, the softmax by hand."""


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, dim, heads, dropout=0.0):
        super().__init__()
        size = dim // heads
        self.wq = nn.Parameter(torch.randn(heads, dim, size) * dim**-0.5)
        self.wk = nn.Parameter(torch.randn(heads, dim, size) * dim**-0.5)
        self.wv = nn.Parameter(torch.randn(heads, dim, size) * dim**-0.5)
        self.wo = nn.Parameter(torch.randn(heads, size, dim) * dim**-0.5)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, return_weights=False):
        q, k, v = (torch.einsum("bnd,hdf->bhnf", x, w) for w in (self.wq, self.wk, self.wv))
        scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
        scores = (scores - scores.amax(dim=-1, keepdim=True)).exp()
        weights = scores / scores.sum(dim=-1, keepdim=True)
        y = torch.einsum("bhnf,hfd->bnd", self.dropout(weights) @ v, self.wo)
        return (y, weights) if return_weights else y
