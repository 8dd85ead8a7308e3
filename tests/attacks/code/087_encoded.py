"""Uses a forbidden part by a name in base64.

Stopped by: the source is searched, and constructions are watched
Outcome: a person looks
Fails: Attention
Runs: Attention PreNorm
Notes: base64.*a person should look|torch.nn.MultiheadAttention
"""


class Attention(nn.Module):
    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__()
        import base64

        part = getattr(nn, base64.b64decode(b"TXVsdGloZWFkQXR0ZW50aW9u").decode())
        self.inner = part(dim, 2, batch_first=True)

    def forward(self, x):
        return self.inner(x, x, x)[0]
