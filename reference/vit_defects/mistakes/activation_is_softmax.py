"""The activation between the two linear layers is a softmax, in which every number depends on others. An
activation such as GELU or ReLU works on every number by itself.

Put nn.GELU() or nn.ReLU() in the place of the softmax.

Look for: softmax() | Softmax() | Softmax2d()
"""


class FeedForward(FeedForward):
    def __init__(self, dim, hidden_dim, dropout=0.0):
        super().__init__(dim, hidden_dim, dropout)
        self.net[1] = nn.Softmax(dim=1)
