"""The tokens are added up.

Divide by their number, or take the largest.
"""


class Pool(Pool):
    def forward(self, x):
        return x.sum(dim=1)
