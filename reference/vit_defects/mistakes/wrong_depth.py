"""The Transformer does not run as many blocks as its argument depth says.

Build the blocks in a loop over range(depth), and run all of them in forward.

Look for: range()
"""


class Transformer(Transformer):
    def forward(self, x):
        attention, feed_forward = self.blocks[0]
        x = x + attention(x)
        return x + feed_forward(x)
