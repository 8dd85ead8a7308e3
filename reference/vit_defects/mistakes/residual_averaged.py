"""The input and the part's output are averaged instead of added: what came in is halved with every part. A
residual connection adds: x = x + part(x).

Leave the factor out.

Look for: _ / 2 | 0.5 * _ | _ * 0.5
"""


class Transformer(Transformer):
    def forward(self, x):
        for attention, feed_forward in self.blocks:
            x = (x + attention(x)) / 2
            x = (x + feed_forward(x)) / 2
        return x
