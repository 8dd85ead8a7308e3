"""Plain parameters of shape (heads, dim, dim_head) and einsum; the output weights are (heads, dim_head, dim)."""


class Attention(nn.Module):
    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__()
        self.W_q = nn.Parameter(torch.randn(heads, dim, dim_head) * dim**-0.5)
        self.W_k = nn.Parameter(torch.randn(heads, dim, dim_head) * dim**-0.5)
        self.W_v = nn.Parameter(torch.randn(heads, dim, dim_head) * dim**-0.5)
        self.b_q = nn.Parameter(torch.zeros(heads, 1, dim_head))
        self.b_k = nn.Parameter(torch.zeros(heads, 1, dim_head))
        self.b_v = nn.Parameter(torch.zeros(heads, 1, dim_head))
        self.W_o = nn.Parameter(torch.randn(heads, dim_head, dim) * dim**-0.5)
        self.b_o = nn.Parameter(torch.zeros(dim))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        q = torch.einsum("bnd,hde->bhne", x, self.W_q) + self.b_q
        k = torch.einsum("bnd,hde->bhne", x, self.W_k) + self.b_k
        v = torch.einsum("bnd,hde->bhne", x, self.W_v) + self.b_v
        weights = torch.softmax(torch.einsum("bhie,bhje->bhij", q, k) * q.shape[-1] ** -0.5, dim=-1)
        mixed = torch.einsum("bhij,bhje->bhie", weights, v)
        return self.dropout(torch.einsum("bhne,hed->bnd", mixed, self.W_o) + self.b_o)
