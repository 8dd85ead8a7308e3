"""In every block the feed-forward part comes before the attention. A block is attention first, then
feed-forward.

Swap the two lines in forward (or the order in which the parts are put into the block).

Look for: loop
"""


class Transformer(Transformer):
    def forward(self, x):
        for attention, feed_forward in self.blocks:
            x = x + feed_forward(x)
            x = x + attention(x)
        return x
