"""Convolutions of width 1, quick GELU."""


class FeedForward(nn.Module):
    def __init__(self, dim, hidden_dim, dropout=0.0):
        super().__init__()
        self.a = nn.Conv1d(dim, hidden_dim, 1)
        self.b = nn.Conv1d(hidden_dim, dim, 1)
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        h = self.a(x.transpose(1, 2))
        h = h * torch.sigmoid(1.702 * h)
        return self.drop(self.b(self.drop(h))).transpose(1, 2)
