"""Convolutions of width 1 in place of linear layers."""


class Attention(nn.Module):
    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__()
        self.heads = heads
        self.to_qkv = nn.Conv1d(dim, 3 * heads * dim_head, kernel_size=1)
        self.to_out = nn.Conv1d(heads * dim_head, dim, kernel_size=1)
        self.drop = nn.Dropout1d(dropout)

    def forward(self, x):
        q, k, v = rearrange(self.to_qkv(x.mT), "b (s h d) n -> s b h n d", s=3, h=self.heads)
        out = (q @ k.mT / q.shape[-1] ** 0.5).softmax(dim=-1) @ v
        return self.drop(self.to_out(rearrange(out, "b h n d -> b (h d) n")).mT)
