"""Keyword arguments given to PreNorm do not reach the wrapped module.

forward(self, x, **kwargs) ends with self.fn(..., **kwargs).

Look for: fn()
"""


class PreNorm(PreNorm):
    def forward(self, x, **kwargs):
        return self.fn(self.norm(x))
