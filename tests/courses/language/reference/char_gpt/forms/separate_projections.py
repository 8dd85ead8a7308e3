"""Three projections without biases, and a mask in a buffer."""


class CausalSelfAttention(nn.Module):
    def __init__(self, dim, heads, longest=64):
        super().__init__()
        self.h = heads
        self.query, self.key, self.value = (nn.Linear(dim, dim, bias=False) for _ in range(3))
        self.project = nn.Linear(dim, dim)
        self.register_buffer("mask", torch.tril(torch.ones(longest, longest)))

    def forward(self, x):
        b, t, c = x.size()
        split = lambda y: y.view(b, t, self.h, c // self.h).transpose(1, 2)  # noqa: E731
        q, k, v = split(self.query(x)), split(self.key(x)), split(self.value(x))
        a = (q @ k.transpose(2, 3)) / (c // self.h) ** 0.5
        a = a.masked_fill(self.mask[:t, :t] == 0, -torch.inf).softmax(-1)
        return self.project((a @ v).transpose(1, 2).contiguous().view(b, t, c))
