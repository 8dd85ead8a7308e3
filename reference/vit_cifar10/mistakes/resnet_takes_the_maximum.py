"""The maximum over the image is classified; it should be the mean.

Look for: amax() | max() | adaptive_max_pool2d() | AdaptiveMaxPool2d()
"""


class ResNet18(ResNet18):
    def forward(self, images):
        return self.head(self.blocks(self.stem(images)).amax(dim=(2, 3)))
