"""Attention drops values in evaluation mode too, so that it gives different outputs for the same input.

Use nn.Dropout, which model.eval() switches off; {F = torch.nn.functional}.dropout has to be told: {F =
torch.nn.functional}.dropout(x, p, self.training).

Look for: dropout()
"""


class Attention(Attention):
    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__(dim, heads, dim_head)
        self.share = dropout

    def forward(self, x):
        return F.dropout(super().forward(x), self.share)
