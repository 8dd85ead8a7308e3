"""The normalization uses a batch normalization's running statistics, which in evaluation mode leave x
nearly as it is. Layer normalization computes mean and variance of every token, in training and in
evaluation alike.

Use nn.LayerNorm(dim).

Look for: BatchNorm1d()
"""


class PreNorm(PreNorm):
    def forward(self, x, **kwargs):
        return self.fn(x / (1 + 1e-5) ** 0.5 * self.norm.weight + self.norm.bias, **kwargs)
