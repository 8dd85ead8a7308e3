"""The dropout argument of FeedForward is not used: nothing is dropped in training.

Put nn.Dropout(dropout) after the activation and after the second linear layer.

Look for: Sequential()
"""


class FeedForward(FeedForward):
    def __init__(self, dim, hidden_dim, dropout=0.0):
        super().__init__(dim, hidden_dim)
