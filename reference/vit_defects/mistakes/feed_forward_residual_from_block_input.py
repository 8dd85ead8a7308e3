"""The second residual connection adds the block's input instead of what came out of the attention: x +
feed_forward(y), where it should be y + feed_forward(y) with y = x + attention(x).

Use the same variable all the way: x = x + attention(x); x = x + feed_forward(x).

Look for: loop_end
"""


class Transformer(Transformer):
    def forward(self, x):
        for attention, feed_forward in self.blocks:
            y = x + attention(x)
            x = x + feed_forward(y)
        return x
