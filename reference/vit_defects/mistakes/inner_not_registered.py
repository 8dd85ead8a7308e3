"""The module that PreNorm wraps is not registered in it: model.parameters() does not find its parameters, so
the optimizer never trains them, and model.to(device) leaves them behind.

Write self.fn = fn, or use nn.ModuleList in place of a list.

Look for: [_, _] | [_] | (_, _) | (_,), [], fn
"""


class PreNorm(PreNorm):
    def __init__(self, dim, fn):
        super().__init__(dim, fn)
        del self.fn
        self.inner = [fn]

    def forward(self, x, **kwargs):
        return self.inner[0](self.norm(x), **kwargs)
