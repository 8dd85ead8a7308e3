"""Weights as parameters of (dim, heads, features), joined by einsum."""


class CausalSelfAttention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        shape = (dim, heads, dim // heads)
        self.q, self.k, self.v = (nn.Parameter(torch.randn(shape) * dim**-0.5) for _ in range(3))
        self.o = nn.Parameter(torch.randn(heads, dim // heads, dim) * dim**-0.5)

    def forward(self, x):
        q, k, v = (torch.einsum("btd,dhf->bhtf", x, w) for w in (self.q, self.k, self.v))
        scores = torch.einsum("bhtf,bhsf->bhts", q, k) / q.shape[-1] ** 0.5
        scores = scores + torch.full(scores.shape[-2:], -1e9).triu(1)
        return torch.einsum("bhts,bhsf,hfd->btd", scores.softmax(-1), v, self.o)
