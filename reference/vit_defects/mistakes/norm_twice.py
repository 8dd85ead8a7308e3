"""The input is normalized before the wrapped module, and its output once more after it. PreNorm normalizes
only what goes in: fn(norm(x)).

Return what fn gives.

Look for: fn()
"""


class PreNorm(PreNorm):
    def forward(self, x, **kwargs):
        return self.norm(self.fn(self.norm(x), **kwargs))
