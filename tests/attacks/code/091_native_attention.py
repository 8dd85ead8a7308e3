"""Uses PyTorch's forbidden attention through its table of operators.

Stopped by: the source is searched under every name
Outcome: a person looks
Runs: PreNorm
Notes: torch.nn.MultiheadAttention
"""


class Attention(nn.Module):
    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__()
        self.heads = heads
        self.to_qkv, self.to_out = nn.Linear(dim, 3 * heads * dim_head), nn.Linear(heads * dim_head, dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        q, k, v = self.to_qkv(x).chunk(3, -1)
        size = q.shape[-1]
        same = torch.eye(size, dtype=x.dtype).repeat(3, 1)
        out = (self.to_out.weight, self.to_out.bias)
        attend = torch.ops.aten._native_multi_head_attention.default
        return self.dropout(attend(q, k, v, size, self.heads, same, x.new_zeros(3 * size), *out)[0])
