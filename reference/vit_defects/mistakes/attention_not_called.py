"""The blocks have an Attention that is never called: tokens never see each other.

Every block begins with x = x + attention(norm(x)).

Look for: loop
"""


class Transformer(Transformer):
    def forward(self, x):
        for _, feed_forward in self.blocks:
            x = x + feed_forward(x)
        return x
