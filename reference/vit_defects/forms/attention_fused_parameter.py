"""One parameter of shape (dim, 3, heads, dim_head), one of shape (heads * dim_head, dim); matrix products."""


class Attention(nn.Module):
    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__()
        self.scale, self.rate = dim_head**-0.5, dropout
        self.w_out = nn.Parameter(torch.empty(heads * dim_head, dim))
        self.w_in = nn.Parameter(torch.empty(dim, 3, heads, dim_head))
        nn.init.normal_(self.w_in, std=dim**-0.5)
        nn.init.xavier_uniform_(self.w_out)

    def forward(self, x):
        q, k, v = torch.einsum("bnd,dshe->sbhne", x, self.w_in)
        weights = (q.mul(self.scale) @ k.transpose(-1, -2)).softmax(-1)
        out = (weights @ v).transpose(1, 2).flatten(2) @ self.w_out
        return F.dropout(out, self.rate, self.training)
