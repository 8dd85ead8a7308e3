"""With pool='mean' the scores do not come from all tokens: the pool argument is ignored, and the class token
is taken in either case.

Keep pool in __init__ (self.pool = pool), and after the Transformer take x.mean(dim=1) where it is 'mean'.

Look for: _[:, 0], pool
"""


class ViT(ViT):
    def __init__(self, *, pool="cls", **options):
        super().__init__(pool="cls", **options)
