"""Both blocks of a group halve height and width: the second one should have a stride of 1.

Hand the stride to the first block of a group alone.
"""


class ResNet18(ResNet18):
    def __init__(self, num_classes=10, width=64):
        nn.Module.__init__(self)
        self.stem = nn.Sequential(
            nn.Conv2d(3, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU()
        )
        sizes = [width * 2**group for group in range(4) for _ in range(2)]
        into = [width, *sizes[:-1]]
        strides = [1, 1, 2, 2, 2, 2, 2, 2]
        self.blocks = nn.Sequential(*[BasicBlock(*each) for each in zip(into, sizes, strides, strict=True)])
        self.head = nn.Linear(sizes[-1], num_classes)
