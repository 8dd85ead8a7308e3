"""The class token gets no position; it stands at position 0, and the patches begin at position 1.

Put it in front of the patches first, then add all positions.
"""


class VisionTransformer(VisionTransformer):
    def tokens(self, images):
        x = self.patches(images)
        if self.pool == "cls":
            x = x + self.positions[:, 1:]
            return torch.cat([self.class_token.expand(len(x), -1, -1), x], dim=1)
        return self.dropout(x + self.positions)
