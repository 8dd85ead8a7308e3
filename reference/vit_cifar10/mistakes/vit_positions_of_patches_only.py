"""There are positions for the patches only: they are added before the class token is put in front, so it has
none.

There should be one position more than there are patches: position 0, for the class token.
"""


class VisionTransformer(VisionTransformer):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        if self.pool == "cls":
            fixed = "positions" in dict(self.named_buffers())
            rest = self.positions[:, :-1].detach().clone()
            del self.positions
            if fixed:
                self.register_buffer("positions", rest)
            else:
                self.positions = nn.Parameter(rest)

    def tokens(self, images):
        x = self.patches(images) + self.positions
        if self.pool == "cls":
            x = torch.cat([self.class_token.expand(len(x), -1, -1), x], dim=1)
        return self.dropout(x)
