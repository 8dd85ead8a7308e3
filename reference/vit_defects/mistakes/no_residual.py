"""The blocks have no residual connections: x = part(x) instead of x = x + part(x). Without them the signal
and the gradient have to pass every layer, and a deep stack hardly trains.

Write x = x + attention(x), then x = x + feed_forward(x).

Look for: loop
"""


class Transformer(Transformer):
    def forward(self, x):
        for attention, feed_forward in self.blocks:
            x = attention(x)
            x = feed_forward(x)
        return x
