"""PreNorm adds the normalized input to what the wrapped module returns: the residual connection belongs to
Transformer, which adds x as it came.

Return self.fn(self.norm(x), **kwargs) only.

Look for: return
"""


class PreNorm(PreNorm):
    def forward(self, x, **kwargs):
        normed = self.norm(x)
        return normed + self.fn(normed, **kwargs)
