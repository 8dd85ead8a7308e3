"""Max-pooling follows the stem; for images of 32 x 32 there should be none.

Look for: MaxPool2d() | max_pool2d()
"""


class ResNet18(ResNet18):
    def __init__(self, num_classes=10, width=64):
        super().__init__(num_classes, width)
        self.stem = nn.Sequential(*self.stem, nn.MaxPool2d(3, 2, 1))
