"""The mean is not subtracted: this is RMSNorm. Layer normalization subtracts the mean of a token's features
and divides by their standard deviation.

(x - mean) / sqrt(var + eps), over the last axis.

Look for: pow() | square() | RMSNorm() | rsqrt()
"""


class PreNorm(PreNorm):
    def forward(self, x, **kwargs):
        size = (x.pow(2).mean(dim=-1, keepdim=True) + 1e-6).sqrt()
        return self.fn(x / size * self.norm.weight + self.norm.bias, **kwargs)
