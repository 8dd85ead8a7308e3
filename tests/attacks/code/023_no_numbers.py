"""Returns what is not a usable number: NaN, another shape, another type, a stride of zero.

Stopped by: replies are decoded as hostile
Outcome: its component fails
Fails: PreNorm FeedForward Attention Transformer
Runs: PreNorm FeedForward Attention Transformer train_epoch
"""


class PreNorm(nn.Module):
    def __init__(self, dim, fn):
        super().__init__()
        self.fn = fn

    def forward(self, x, **kwargs):
        return self.fn(x, **kwargs) * float("nan")


class FeedForward(nn.Module):
    def __init__(self, dim, hidden_dim, dropout=0.0):
        super().__init__()

    def forward(self, x):
        return torch.zeros(1).expand(2**40, 2**20)


class Attention(nn.Module):
    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__()

    def forward(self, x):
        return x.new_zeros(()).expand_as(x)


class Transformer(nn.Module):
    def __init__(self, dim, depth, heads, dim_head, mlp_dim, dropout=0.0):
        super().__init__()

    def forward(self, x):
        return x.to(torch.int64)
