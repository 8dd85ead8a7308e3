"""FeedForward's hidden layer does not have hidden_dim features: the argument is not used.

Linear(dim, hidden_dim), activation, Linear(hidden_dim, dim).

Look for: Linear(dim, _), Linear()
"""


class FeedForward(FeedForward):
    def __init__(self, dim, hidden_dim, dropout=0.0):
        super().__init__(dim, 4 * dim, dropout)
