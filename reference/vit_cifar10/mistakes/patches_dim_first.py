"""The tokens are (batch, dim, patches); they should be (batch, patches, dim).

Swap the last two axes at the end.

Look for: return
"""


class PatchEmbedding(PatchEmbedding):
    def forward(self, images):
        return self.projection(images).flatten(2)
