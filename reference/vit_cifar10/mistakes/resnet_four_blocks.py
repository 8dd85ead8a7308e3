"""There is one block in each group; there should be two.

ResNet-18 has 16 convolutions in its blocks, one in its stem, and a linear layer.
"""


class ResNet18(ResNet18):
    def __init__(self, num_classes=10, width=64):
        super().__init__(num_classes, width)
        self.blocks = nn.Sequential(*[block for number, block in enumerate(self.blocks) if number % 2 == 0])
