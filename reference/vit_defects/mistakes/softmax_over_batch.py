"""A softmax over the images of the batch ends the model: the score of an image depends on the other images of
its batch.

Return the scores of the last linear layer as they are; cross-entropy applies the softmax over the classes.

Look for: softmax() | Softmax()
"""


class ViT(ViT):
    def forward(self, img):
        return super().forward(img).softmax(dim=0)
