"""Every block works on the Transformer's input, and their outputs are summed. Blocks come one after
another: each works on the output of the one before it.

Overwrite x in the loop: x = x + attention(x).

Look for: loop
"""


class Transformer(Transformer):
    def forward(self, x):
        total = x
        for attention, feed_forward in self.blocks:
            y = x + attention(x)
            total = total + attention(x) + feed_forward(y)
        return total
