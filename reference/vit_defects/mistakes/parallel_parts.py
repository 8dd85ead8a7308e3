"""Attention and feed-forward part both read the input of the block: x + attention(x) + feed_forward(x). The
feed-forward part should read what the attention made of it.

Assign x after the attention, before the feed-forward part is applied: two steps, two residual
connections.

Look for: loop_end
"""


class Transformer(Transformer):
    def forward(self, x):
        for attention, feed_forward in self.blocks:
            x = x + attention(x) + feed_forward(x)
        return x
