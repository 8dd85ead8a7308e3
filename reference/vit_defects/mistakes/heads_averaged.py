"""The heads are averaged, or summed, to the dim_head numbers of a single head. What the heads found should
stand side by side: heads * dim_head numbers for each token, which the output projection maps to dim.

Join the heads by transpose(1, 2) and flatten(2); the output layer is nn.Linear(heads * dim_head, dim).

Look for: mean() | sum()
"""


class Attention(Attention):
    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__(dim, heads, dim_head, dropout)
        self.to_out = nn.Sequential(nn.Linear(dim_head, dim), nn.Dropout(dropout))

    def forward(self, x):
        q, k, v = (
            rearrange(part, "b n (h d) -> b h n d", h=self.heads) for part in self.to_qkv(x).chunk(3, dim=-1)
        )
        weights = (q @ k.transpose(-2, -1) * self.scale).softmax(dim=-1)
        return self.to_out((weights @ v).mean(dim=1))
