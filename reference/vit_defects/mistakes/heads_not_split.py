"""The heads are cut by a plain reshape to (batch, heads, tokens, dim_head): a head gets some of the tokens
instead of some of the features of every token. Features have to be cut, and the head axis moved before the
tokens.

Use view(b, n, heads, dim_head).transpose(1, 2).

Look for: view() | reshape() | rearrange()
"""


class Attention(Attention):
    def forward(self, x):
        q, k, v = (
            part.reshape(x.shape[0], self.heads, x.shape[1], -1) for part in self.to_qkv(x).chunk(3, dim=-1)
        )
        weights = (q @ k.transpose(-2, -1) * self.scale).softmax(dim=-1)
        return self.to_out(rearrange(weights @ v, "b h n d -> b n (h d)"))
