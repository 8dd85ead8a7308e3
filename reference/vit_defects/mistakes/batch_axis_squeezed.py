"""For a batch of one image, ViT returns scores of shape (num_classes,): squeeze() took the batch's axis too.

Leave squeeze() out, or name the axis that it should take: squeeze(1).

Look for: squeeze()
"""


class ViT(ViT):
    def forward(self, images):
        return super().forward(images).squeeze()
