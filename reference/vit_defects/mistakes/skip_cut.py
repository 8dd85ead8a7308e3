"""The residual connection hands on the values but not the gradients: the gradient has to pass every part,
and fades in a deep network.

x = x + part(x), without detach() or .data.

Look for: detach() | _.data | no_grad()
"""


class Transformer(Transformer):
    def forward(self, x):
        for attention, feed_forward in self.blocks:
            x = x.detach() + attention(x)
            x = x.detach() + feed_forward(x)
        return x
