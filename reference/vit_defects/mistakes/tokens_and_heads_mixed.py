"""The heads are cut by a plain view to (batch, heads, tokens, dim_head), without moving an axis: a head
then holds pieces of different tokens. The features of each token are to be split into heads.

First view(batch, tokens, heads, dim_head), then transpose(1, 2).

Look for: view() | reshape() | rearrange()
"""


class Attention(Attention):
    def forward(self, x):
        b, n, _ = x.shape
        q, k, v = (part.reshape(b, self.heads, n, -1) for part in self.to_qkv(x).chunk(3, dim=-1))
        out = (q @ k.transpose(-2, -1) * self.scale).softmax(dim=-1) @ v
        return self.to_out(out.reshape(b, n, -1))
