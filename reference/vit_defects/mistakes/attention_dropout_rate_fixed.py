"""In training Attention drops values at another rate than its argument dropout asks for; with dropout=0
nothing should be dropped.

Write nn.Dropout(dropout), with the argument itself.

Look for: Dropout() | dropout()
"""


class Attention(Attention):
    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__(dim, heads, dim_head, 0.3)
