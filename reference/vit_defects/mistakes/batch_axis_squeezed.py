"""For a batch of one image, ViT returns scores of shape (num_classes,): squeeze() took the batch's axis too.

Name the axis that squeeze() should take, squeeze(1), or leave it out where none has to go.

Look for: squeeze()
"""


class ViT(ViT):
    def forward(self, images):
        return super().forward(images).squeeze()
