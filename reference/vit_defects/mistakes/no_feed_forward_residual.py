"""The feed-forward part has no residual connection: x = feed_forward(x) instead of x = x + feed_forward(x).
The attention has one.

Write x = x + feed_forward(x).

Look for: loop_end
"""


class Transformer(Transformer):
    def forward(self, x):
        for attention, feed_forward in self.blocks:
            x = x + attention(x)
            x = feed_forward(x)
        return x
