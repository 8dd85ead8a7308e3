"""The class token stands behind the patches; it should stand in front of them.

Look for: cat() | concat()
"""


class VisionTransformer(VisionTransformer):
    def tokens(self, images):
        x = self.patches(images)
        if self.pool == "cls":
            x = torch.cat([x, self.class_token.expand(len(x), -1, -1)], dim=1)
        return self.dropout(x + self.positions)
