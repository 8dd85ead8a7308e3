"""The model ends with a softmax; it should give scores, since the loss applies the softmax itself.

Look for: softmax() | Softmax()
"""


class VisionTransformer(VisionTransformer):
    def forward(self, images):
        return super().forward(images).softmax(dim=1)
