"""FeedForward drops values in evaluation mode too, so that it gives different outputs for the same input.

Use nn.Dropout, which model.eval() switches off; {F = torch.nn.functional}.dropout has to be told: {F =
torch.nn.functional}.dropout(x, p, self.training).

Look for: dropout()
"""


class FeedForward(FeedForward):
    def __init__(self, dim, hidden_dim, dropout=0.0):
        super().__init__(dim, hidden_dim)
        self.share = dropout

    def forward(self, x):
        return F.dropout(self.net(x), self.share)
