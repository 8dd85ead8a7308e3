"""The stem is that of ResNet for large images, 7 x 7; here it should be 3 x 3.

Look for: Conv2d(_, _, 7) | Conv2d(_, _, kernel_size=7)
"""


class ResNet18(ResNet18):
    def __init__(self, num_classes=10, width=64):
        super().__init__(num_classes, width)
        self.stem[0] = nn.Conv2d(3, width, 7, stride=2, padding=3, bias=False)
