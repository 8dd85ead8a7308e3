"""The class token is not a parameter, so that it never learns.

nn.Parameter

Look for: randn(1, 1, _) | zeros(1, 1, _) | ones(1, 1, _), class_token
"""


class VisionTransformer(VisionTransformer):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        if self.pool == "cls":
            kept = self.class_token.detach()
            del self.class_token
            self.register_buffer("class_token", kept)
