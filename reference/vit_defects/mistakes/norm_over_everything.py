"""The mean and the variance are taken over all tokens and features of an image together. Layer
normalization treats every token by itself, over its last axis.

Use nn.LayerNorm(dim), or mean(dim=-1) and var(dim=-1).

Look for: mean() | LayerNorm() | layer_norm()
"""


class PreNorm(PreNorm):
    def forward(self, x, **kwargs):
        mean, var = x.mean(dim=(1, 2), keepdim=True), x.var(dim=(1, 2), unbiased=False, keepdim=True)
        normed = (x - mean) / (var + 1e-5).sqrt() * self.norm.weight + self.norm.bias
        return self.fn(normed, **kwargs)
