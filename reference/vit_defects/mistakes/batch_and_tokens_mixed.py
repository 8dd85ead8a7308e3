"""The tokens of all images of the batch look at each other, as if they were one image. An image's result
should not depend on the other images of its batch.

Keep the batch axis in front in every reshape: (batch, heads, tokens, dim_head).

Look for: view() | reshape() | rearrange()
"""


class Attention(Attention):
    def forward(self, x):
        return super().forward(x.reshape(1, -1, x.shape[-1])).reshape(x.shape)
