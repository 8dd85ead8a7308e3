"""Attention and feed-forward part are written inline, in parallel lists of layers."""


class Transformer(nn.Module):
    def __init__(self, dim, depth, heads, dim_head, mlp_dim, dropout=0.0):
        super().__init__()
        self.depth, self.heads, self.dim_head = depth, heads, dim_head
        inner = heads * dim_head
        self.norm1 = nn.ModuleList([nn.LayerNorm(dim) for _ in range(depth)])
        self.qkv = nn.ModuleList([nn.Linear(dim, inner * 3, bias=False) for _ in range(depth)])
        self.out = nn.ModuleList([nn.Linear(inner, dim) for _ in range(depth)])
        self.norm2 = nn.ModuleList([nn.LayerNorm(dim) for _ in range(depth)])
        self.fc1 = nn.ModuleList([nn.Linear(dim, mlp_dim) for _ in range(depth)])
        self.fc2 = nn.ModuleList([nn.Linear(mlp_dim, dim) for _ in range(depth)])
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        b, n, d = x.shape
        for i in range(self.depth):
            # --- attention
            y = self.norm1[i](x)
            q, k, v = self.qkv[i](y).view(b, n, 3, self.heads, self.dim_head).permute(2, 0, 3, 1, 4).unbind(0)
            a = torch.softmax(q @ k.transpose(2, 3) * self.dim_head**-0.5, dim=-1)
            y = (a @ v).permute(0, 2, 1, 3).reshape(b, n, -1)
            x = x + self.drop(self.out[i](y))
            # --- mlp
            y = self.norm2[i](x)
            y = self.drop(F.gelu(self.fc1[i](y)))
            x = x + self.drop(self.fc2[i](y))
        return x
