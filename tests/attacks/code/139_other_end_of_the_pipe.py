"""Puts another file in the place of the pipe to the judge while it uses a forbidden part.

Stopped by: a worker whose pipe is not its own ends itself before the part is used
Outcome: its component fails
Fails: Attention
Says: ended by itself with exit code 70
Runs: Attention PreNorm
"""

import os


def attended(*args, **kwargs):
    kept = {number: os.dup(number) for number in (3, 4)}
    for number in kept:
        os.dup2(os.open(os.devnull, os.O_RDWR), number)
    try:
        return next(value for name, value in vars(F).items() if name.startswith("multi_head"))(*args, **kwargs)
    finally:
        for number, pipe in kept.items():
            os.dup2(pipe, number)


class Attention(nn.Module):
    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__()
        inner = heads * dim_head
        self.heads, self.inner, self.rate = heads, inner, dropout
        self.to_qkv = nn.Linear(dim, inner * 3, bias=False)
        self.to_out = nn.Sequential(nn.Linear(inner, dim), nn.Dropout(dropout))

    def forward(self, x):
        q, k, v = self.to_qkv(x).transpose(0, 1).chunk(3, dim=-1)
        one = torch.eye(self.inner, dtype=x.dtype)
        out = attended(
            q, k, v, self.inner, self.heads, one.repeat(3, 1), None, None, None, False,
            self.rate, one, None, training=self.training, need_weights=False)[0]
        return self.to_out(out.transpose(0, 1))
