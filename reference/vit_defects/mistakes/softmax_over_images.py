"""The softmax runs over the images of the batch (axis 0): what one image's tokens look at depends on the
other images. Each token's weights for the tokens of its own image should sum to 1.

Use softmax(dim=-1).

Look for: softmax() | Softmax()
"""


class Attention(Attention):
    def forward(self, x):
        q, k, v = (
            rearrange(part, "b n (h d) -> b h n d", h=self.heads) for part in self.to_qkv(x).chunk(3, dim=-1)
        )
        scores = q @ k.transpose(-2, -1) * self.scale
        out = scores.softmax(dim=0) @ v
        return self.to_out(rearrange(out, "b h n d -> b n (h d)"))
