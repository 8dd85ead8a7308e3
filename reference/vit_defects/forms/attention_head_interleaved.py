"""One wide layer whose rows are read as (head, three, feature), with a bias."""


class Attention(nn.Module):
    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__()
        self.h = heads
        self.qkv = nn.Linear(dim, heads * 3 * dim_head, bias=True)
        self.out = nn.Linear(heads * dim_head, dim, bias=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        q, k, v = rearrange(self.qkv(x), "b n (h three d) -> three b h n d", h=self.h, three=3)
        dots = torch.einsum("bhid,bhjd->bhij", q, k) * (q.shape[-1] ** -0.5)
        out = torch.einsum("bhij,bhjd->bhid", F.softmax(dots, -1), v)
        return self.dropout(self.out(rearrange(out, "b h n d -> b n (h d)")))
