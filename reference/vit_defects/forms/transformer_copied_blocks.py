"""One block is built and copied depth times, each copy with weights of its own."""

import copy


def clones(module, n):
    """n independent copies"""
    return nn.ModuleList([copy.deepcopy(module) for _ in range(n)])


class Transformer(nn.Module):
    def __init__(self, dim, depth, heads, dim_head, mlp_dim, dropout=0.0):
        super().__init__()
        self.attns = clones(PreNorm(dim, Attention(dim, heads, dim_head, dropout)), depth)
        self.ffs = clones(PreNorm(dim, FeedForward(dim, mlp_dim, dropout)), depth)
        for p in self.parameters():  # otherwise all layers would start out equal
            if p.dim() > 1:
                nn.init.xavier_uniform_(p)

    def forward(self, x):
        for attn, ff in zip(self.attns, self.ffs):
            x = attn(x) + x
            x = ff(x) + x
        return x
