"""The features are divided by their variance instead of its square root: they do not end up with variance
1.

(x - mean) / sqrt(var + eps), over the last axis.

Look for: var()
"""


class PreNorm(PreNorm):
    def forward(self, x, **kwargs):
        mean, var = x.mean(dim=-1, keepdim=True), x.var(dim=-1, unbiased=False, keepdim=True)
        return self.fn((x - mean) / (var + 1e-5) * self.norm.weight + self.norm.bias, **kwargs)
