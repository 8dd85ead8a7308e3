"""Every head has an output matrix of its own, and the heads are summed instead of joined."""


class Attention(nn.Module):
    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__()
        self.dim_head = dim_head
        self.blocks = nn.ModuleList()
        for i in range(heads):
            self.blocks.append(
                nn.ModuleDict(
                    {
                        "qkv": nn.Linear(dim, 3 * dim_head, bias=False),
                        "out": nn.Linear(dim_head, dim, bias=False),
                    }
                )
            )
        self.bias = nn.Parameter(torch.zeros(dim))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        result = self.bias
        for blk in self.blocks:
            q, k, v = torch.tensor_split(blk["qkv"](x), 3, dim=2)
            s = torch.matmul(q, torch.swapaxes(k, 1, 2)).div(self.dim_head**0.5)
            result = result + blk["out"](torch.matmul(s.softmax(2), v))
        return self.dropout(result)
