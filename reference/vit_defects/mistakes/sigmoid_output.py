"""The scores go through a sigmoid: they all lie between 0 and 1, so that cross-entropy, which applies a
softmax, can never reach a confident answer.

Return the scores of the last linear layer as they are.

Look for: sigmoid() | Sigmoid()
"""


class ViT(ViT):
    def forward(self, img):
        return super().forward(img).sigmoid()
