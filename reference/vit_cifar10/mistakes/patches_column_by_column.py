"""The patches come column by column; they should come row by row.

In a flattened grid of patches, the column should change fastest: (rows columns), not (columns rows).

Look for: transpose(2, 3) | permute()
"""


class PatchEmbedding(PatchEmbedding):
    def forward(self, images):
        return self.projection(images).transpose(2, 3).flatten(2).transpose(1, 2)
