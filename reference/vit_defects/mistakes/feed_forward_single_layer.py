"""FeedForward has a single linear layer. It should have two, with a nonlinearity between them: W2
activation(W1 x + b1) + b2.

Linear(dim, hidden_dim), activation, Linear(hidden_dim, dim).

Look for: Linear()
"""


class FeedForward(FeedForward):
    def __init__(self, dim, hidden_dim, dropout=0.0):
        super().__init__(dim, hidden_dim, dropout)
        self.net = nn.Sequential(nn.Linear(dim, dim), nn.GELU(), nn.Dropout(dropout))
