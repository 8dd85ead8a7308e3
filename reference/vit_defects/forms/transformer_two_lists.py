"""All attentions first, then all feed-forward parts, in two lists; a loop over numbers."""


class Transformer(nn.Module):
    def __init__(self, dim, depth, heads, dim_head, mlp_dim, dropout=0.0):
        super().__init__()
        self.depth = depth
        self.feeds = nn.ModuleList([PreNorm(dim, FeedForward(dim, mlp_dim, dropout)) for i in range(depth)])
        self.attns = nn.ModuleList(
            [PreNorm(dim, Attention(dim, heads, dim_head, dropout)) for i in range(depth)]
        )

    def forward(self, x):
        for i in range(self.depth):
            residual = x
            x = self.attns[i](x)
            x = torch.add(x, residual)
            residual = x
            x = self.feeds[i](x)
            x = x + residual
        return x
