"""Convolutions with biases, and a shortcut as a pair of attributes that may be None."""


class BasicBlock(nn.Module):
    def __init__(self, in_channels, channels, stride=1):
        super().__init__()
        self.first = nn.Conv2d(in_channels, channels, kernel_size=3, stride=stride, padding=1)
        self.first_norm = nn.BatchNorm2d(channels)
        self.second = nn.Conv2d(channels, channels, kernel_size=3, stride=1, padding=1)
        self.second_norm = nn.BatchNorm2d(channels)
        self.down = self.down_norm = None
        if stride > 1 or in_channels != channels:
            self.down = nn.Conv2d(in_channels, channels, kernel_size=1, stride=stride)
            self.down_norm = nn.BatchNorm2d(channels)

    def forward(self, x):
        around = x if self.down is None else self.down_norm(self.down(x))
        x = torch.relu(self.first_norm(self.first(x)))
        return torch.relu(self.second_norm(self.second(x)) + around)
