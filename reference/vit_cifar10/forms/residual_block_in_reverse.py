"""A residual block that makes its second convolution and norm before its first ones."""


class BasicBlock(nn.Module):
    def __init__(self, in_channels, channels, stride=1):
        super().__init__()
        self.bn2, self.bn1 = nn.BatchNorm2d(channels), nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.conv1 = nn.Conv2d(in_channels, channels, 3, stride, 1, bias=False)
        self.around = None
        if stride != 1 or in_channels != channels:
            convolution = nn.Conv2d(in_channels, channels, 1, stride, bias=False)
            self.around = nn.Sequential(convolution, nn.BatchNorm2d(channels))

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(y + (x if self.around is None else self.around(x)))
