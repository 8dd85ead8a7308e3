"""Four layers as attributes, adaptive pooling, and a stem with a bias."""


class ResNet18(nn.Module):
    def __init__(self, num_classes=10, width=64):
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, kernel_size=3, stride=1, padding=1)
        self.bn1 = nn.BatchNorm2d(width)
        self.layer1 = self.layer(width, width, 1)
        self.layer2 = self.layer(width, 2 * width, 2)
        self.layer3 = self.layer(2 * width, 4 * width, 2)
        self.layer4 = self.layer(4 * width, 8 * width, 2)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(8 * width, num_classes)

    @staticmethod
    def layer(ins, outs, stride):
        return nn.Sequential(BasicBlock(ins, outs, stride), BasicBlock(outs, outs))

    def forward(self, images):
        x = torch.relu(self.bn1(self.conv1(images)))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(torch.flatten(self.pool(x), 1))
