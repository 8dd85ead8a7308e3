"""No positions are added: the model cannot tell where a patch is.

Look for: cat()
"""


class VisionTransformer(VisionTransformer):
    def tokens(self, images):
        x = self.patches(images)
        if self.pool == "cls":
            x = torch.cat([self.class_token.expand(len(x), -1, -1), x], dim=1)
        return self.dropout(x)
