"""The wrapped module receives x as it is: nothing is normalized. PreNorm computes fn(norm(x)).

Apply the nn.LayerNorm to x before calling fn.

Look for: fn()
"""


class PreNorm(PreNorm):
    def forward(self, x, **kwargs):
        return self.fn(x, **kwargs)
