"""The softmax is taken over the queries, not over the keys.

softmax(dim=-1).
"""


class CausalSelfAttention(CausalSelfAttention):
    def forward(self, x):
        batch, tokens, dim = x.shape
        q, k, v = self.qkv(x).view(batch, tokens, 3, self.heads, dim // self.heads).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) * (dim // self.heads) ** -0.5
        behind = torch.ones(tokens, tokens, dtype=torch.bool, device=x.device).triu(1)
        weights = scores.masked_fill(behind, float("-inf")).softmax(dim=-2)
        return self.out((weights @ v).transpose(1, 2).reshape(batch, tokens, dim))
