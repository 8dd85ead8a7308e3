"""The output of Attention for the same input changes from call to call, in evaluation mode and with
dropout=0: a call changes something that the next call uses.

In forward, assign to local variables only, and change no attribute of self.
"""


class Attention(Attention):
    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__(dim, heads, dim_head, dropout)
        self.factor = 1.0

    def forward(self, x):
        self.factor *= 1.5
        return super().forward(self.factor * x)
