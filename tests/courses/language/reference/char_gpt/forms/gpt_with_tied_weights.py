"""The head shares the embedding's weights, and has no bias."""


class GPT(nn.Module):
    def __init__(self, vocabulary, block_size, dim, depth, heads):
        super().__init__()
        self.wte = nn.Embedding(vocabulary, dim)
        self.wpe = nn.Parameter(torch.randn(1, block_size, dim) * 0.02)
        self.h = nn.ModuleList([Block(dim, heads) for _ in range(depth)])
        self.ln_f = nn.LayerNorm(dim)
        self.lm_head = nn.Linear(dim, vocabulary, bias=False)
        self.lm_head.weight = self.wte.weight

    def forward(self, tokens):
        x = self.wte(tokens) + self.wpe[:, : tokens.size(1)]
        for block in self.h:
            x = block(x)
        return self.lm_head(self.ln_f(x))
