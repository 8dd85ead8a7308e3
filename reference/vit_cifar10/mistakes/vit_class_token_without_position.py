"""The class token gets no position; it should get position 0, and the patches the ones from 1 on.

Put it in front of the patches first, then add all positions.

Look for: cat()
"""


class VisionTransformer(VisionTransformer):
    def tokens(self, images):
        x = self.patches(images)
        if self.pool == "cls":
            x = x + self.positions[:, 1:]
            return torch.cat([self.class_token.expand(len(x), -1, -1), x], dim=1)
        return self.dropout(x + self.positions)
