"""The scores are probabilities: a softmax was applied. Cross-entropy applies its own, and with two of them
the gradients become very small.

Take the softmax out: the scores are what the last linear layer gives.

Look for: softmax() | Softmax()
"""


class ViT(ViT):
    def forward(self, img):
        return super().forward(img).softmax(dim=-1)
