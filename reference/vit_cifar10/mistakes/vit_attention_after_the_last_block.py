"""attention runs all blocks, and gives the last one what it has made itself: forward gives it something else.

Run all blocks but the last, and ask the last one's attention for its weights.

Look for: for
"""


class VisionTransformer(VisionTransformer):
    def attention(self, images):
        x = self.tokens(images)
        for block in self.blocks:
            x = block(x)
        last = self.blocks[-1]
        return last.attention(last.norm1(x), return_weights=True)[1]
