"""A ResNet that makes its blocks by keywords, and starts the weights as He et al. do."""


class ResNet18(nn.Module):
    def __init__(self, num_classes=10, width=64):
        super().__init__()
        layers = [nn.Conv2d(3, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
        plan = [(width, 1), (2 * width, 2), (4 * width, 2), (8 * width, 2)]
        now = width
        for channels, stride in plan:
            layers.append(BasicBlock(in_channels=now, channels=channels, stride=stride))
            layers.append(BasicBlock(in_channels=channels, channels=channels, stride=1))
            now = channels
        self.features = nn.Sequential(*layers)
        self.classify = nn.Linear(now, num_classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, images):
        return self.classify(self.features(images).mean((-2, -1)))
