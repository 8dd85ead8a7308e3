"""Transformer drops values in evaluation mode too, so that the same tokens give another output each time.

Use nn.Dropout, which model.eval() switches off; {F = torch.nn.functional}.dropout has to be told: {F =
torch.nn.functional}.dropout(x, p, self.training).

Look for: dropout()
"""


class Transformer(Transformer):
    def __init__(self, dim, depth, heads, dim_head, mlp_dim, dropout=0.0):
        super().__init__(dim, depth, heads, dim_head, mlp_dim, dropout)
        self.share = dropout

    def forward(self, x):
        for attention, feed_forward in self.blocks:
            x = x + F.dropout(attention(x), self.share)
            x = x + F.dropout(feed_forward(x), self.share)
        return x
