"""Attention adds its input to its output: the residual connection belongs to Transformer, and would be added
twice.

Return the projected result only.

Look for: return
"""


class Attention(Attention):
    def forward(self, x):
        return super().forward(x) + x
