"""There is no softmax: the raw scores weight the values. The weights of a token for all others should be
positive and sum to 1.

Apply softmax(dim=-1) to the scaled scores.

Look for: _ @ _.transpose() | _ @ _.mT | matmul(_, _.transpose()) | bmm(_, _.transpose())
"""


class Attention(Attention):
    def forward(self, x):
        q, k, v = (
            rearrange(part, "b n (h d) -> b h n d", h=self.heads) for part in self.to_qkv(x).chunk(3, dim=-1)
        )
        scores = q @ k.transpose(-2, -1) * self.scale
        weights = scores
        return self.to_out(rearrange(weights @ v, "b h n d -> b n (h d)"))
