"""The patches come column by column; they should come row by row.

flatten(2) after the convolution goes through the grid row by row: leave its axes as they are.
"""


class PatchEmbedding(PatchEmbedding):
    def forward(self, images):
        return self.projection(images).transpose(2, 3).flatten(2).transpose(1, 2)
