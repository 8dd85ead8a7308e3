"""width has no effect."""


class ResNet18(ResNet18):
    def __init__(self, num_classes=10, width=64):
        super().__init__(num_classes, 8)
