"""The blocks have a FeedForward that is never called.

Every block ends with x = x + feed_forward(norm(x)).

Look for: loop_end
"""


class Transformer(Transformer):
    def forward(self, x):
        for attention, _ in self.blocks:
            x = x + attention(x)
        return x
