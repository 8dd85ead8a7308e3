"""The normalization comes after the wrapped module: norm(fn(x)) instead of fn(norm(x)). PreNorm gives the
module normalized tokens, and leaves its output as it is.

Return self.fn(self.norm(x), **kwargs).

Look for: fn()
"""


class PreNorm(PreNorm):
    def forward(self, x, **kwargs):
        return self.norm(self.fn(x, **kwargs))
