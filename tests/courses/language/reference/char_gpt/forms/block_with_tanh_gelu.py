"""The tanh approximation of GELU, layers without a container."""


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.ln_1 = nn.LayerNorm(dim)
        self.attn = CausalSelfAttention(dim, heads)
        self.ln_2 = nn.LayerNorm(dim)
        self.c_fc, self.c_proj = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

    def forward(self, x):
        x = self.attn(self.ln_1(x)) + x
        return self.c_proj(F.gelu(self.c_fc(self.ln_2(x)), approximate="tanh")) + x
