"""The scale is split between queries and keys, the softmax is written out, and only some projections have
biases."""


def stable_softmax(z, axis=-1):
    z = z - z.amax(dim=axis, keepdim=True).detach()
    e = torch.exp(z)
    return e / e.sum(dim=axis, keepdim=True)


class Attention(nn.Module):
    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__()
        self.num_heads = heads
        self.head_width = dim_head
        total = heads * dim_head
        self.W_Q = nn.Linear(dim, total, bias=True)
        self.W_K = nn.Linear(dim, total, bias=False)  # a bias on the keys cancels in the softmax anyway
        self.W_V = nn.Linear(dim, total, bias=True)
        self.W_O = nn.Linear(total, dim)
        self.dropout = nn.Dropout(dropout)
        self.root_scale = dim_head**-0.25

    def split(self, t):
        B, N, _ = t.size()
        return t.view(B, N, self.num_heads, self.head_width).transpose(1, 2)

    def forward(self, x):
        B, N, _ = x.size()
        Q = self.split(self.W_Q(x)) * self.root_scale
        K = self.split(self.W_K(x)) * self.root_scale
        V = self.split(self.W_V(x))
        P = stable_softmax(Q @ K.transpose(-2, -1))
        H = (P @ V).transpose(1, 2).contiguous().view(B, N, -1)
        return self.dropout(self.W_O(H))
