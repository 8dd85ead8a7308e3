"""No group halves height and width.

The first block of the second, third and fourth group has a stride of 2.
"""


class ResNet18(ResNet18):
    def __init__(self, num_classes=10, width=64):
        nn.Module.__init__(self)
        self.stem = nn.Sequential(
            nn.Conv2d(3, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU()
        )
        sizes = [width * 2**group for group in range(4) for _ in range(2)]
        into = [width, *sizes[:-1]]
        self.blocks = nn.Sequential(*[BasicBlock(*each) for each in zip(into, sizes, strict=True)])
        self.head = nn.Linear(sizes[-1], num_classes)
