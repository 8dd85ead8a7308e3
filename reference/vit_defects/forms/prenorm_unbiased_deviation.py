"""A layer normalization by the standard deviation (n - 1, eps outside the root), as in a well-known text."""


class PreNorm(nn.Module):
    def __init__(self, dim, fn):
        super().__init__()
        self.a_2 = nn.Parameter(torch.ones(dim))
        self.b_2 = nn.Parameter(torch.zeros(dim))
        self.eps = 1e-6
        self.fn = fn

    def forward(self, x, **kwargs):
        mean, std = x.mean(-1, keepdim=True), x.std(-1, keepdim=True)
        return self.fn(self.a_2 * (x - mean) / (std + self.eps) + self.b_2, **kwargs)
