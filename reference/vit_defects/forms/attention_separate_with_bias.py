"""Three linear layers with bias, heads split by view and transpose, dropout on the attention weights.

Policy: dropout_before_projection
"""

import math


class Attention(nn.Module):
    def __init__(self, dim: int, heads: int = 4, dim_head: int = 64, dropout: float = 0.0) -> None:
        super().__init__()
        self.n_heads, self.d_k = heads, dim_head
        self.query = nn.Linear(dim, heads * dim_head)
        self.key = nn.Linear(dim, heads * dim_head)
        self.value = nn.Linear(dim, heads * dim_head)
        self.drop = nn.Dropout(dropout)
        self.proj = nn.Linear(heads * dim_head, dim)

    def split(self, x: torch.Tensor) -> torch.Tensor:
        b, n, _ = x.size()
        return x.view(b, n, self.n_heads, self.d_k).transpose(1, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        attn = torch.softmax(torch.matmul(q, k.transpose(2, 3)) / math.sqrt(self.d_k), dim=3)
        out = torch.matmul(self.drop(attn), v).transpose(1, 2).contiguous()
        return self.proj(out.view(x.size(0), x.size(1), -1))
