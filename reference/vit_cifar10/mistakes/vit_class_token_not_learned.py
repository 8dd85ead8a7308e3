"""The class token is no parameter, so that it never learns.

nn.Parameter
"""


class VisionTransformer(VisionTransformer):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        if self.pool == "cls":
            kept = self.class_token.detach()
            del self.class_token
            self.register_buffer("class_token", kept)
