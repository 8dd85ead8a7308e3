"""A layer normalization of one's own, with parameters of shape (1, 1, dim)."""


class MyLayerNorm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.eps = eps
        self.beta = nn.Parameter(torch.zeros(1, 1, dim))
        self.gamma = nn.Parameter(torch.ones(1, 1, dim))

    def forward(self, x):
        mean = x.mean(dim=-1, keepdim=True)
        var = x.var(dim=-1, unbiased=False, keepdim=True)
        return self.gamma * (x - mean) / torch.sqrt(var + self.eps) + self.beta


class PreNorm(nn.Module):
    def __init__(self, dim, fn):
        super(PreNorm, self).__init__()
        self.fn = fn
        self.layer_norm = MyLayerNorm(dim)

    def forward(self, x, **kwargs):
        x = self.layer_norm(x)
        x = self.fn(x, **kwargs)
        return x
