"""PreNorm adds its input and normalizes the sum: norm(x + fn(x)), the post-norm form. PreNorm normalizes x
before fn and adds nothing; the Transformer adds.

Return self.fn(self.norm(x), **kwargs).

Look for: norm(), return
"""


class PreNorm(PreNorm):
    def forward(self, x, **kwargs):
        return self.norm(x + self.fn(x, **kwargs))
