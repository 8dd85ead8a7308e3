"""The queries are compared with themselves: the scores are q q^T, and the keys play no part. What a token
asks for and what it offers should be two different projections.

Compare queries with keys: the scores are q @ k.transpose(-2, -1).

Look for: _ @ q.transpose() | matmul(_, q.transpose()), _ @ _.transpose() | _ @ _.mT | matmul(_,
_.transpose()) | bmm(_, _.transpose())
"""


class Attention(Attention):
    def forward(self, x):
        q, k, v = (
            rearrange(part, "b n (h d) -> b h n d", h=self.heads) for part in self.to_qkv(x).chunk(3, dim=-1)
        )
        scores = q @ q.transpose(-2, -1) * self.scale
        out = scores.softmax(dim=-1) @ v
        return self.to_out(rearrange(out, "b h n d -> b n (h d)"))
