"""The input of a part is added twice: x + x + part(x). Its size doubles with every part, and the part's own
contribution is drowned out.

Add it once: x = x + part(x). Does the part add it already?

Look for: _ + _ + _ | 2 * _ | _ * 2
"""


class Transformer(Transformer):
    def forward(self, x):
        for attention, feed_forward in self.blocks:
            x = x + x + attention(x)
            x = x + x + feed_forward(x)
        return x
