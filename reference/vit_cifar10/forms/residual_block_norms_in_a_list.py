"""A residual block with its norms in a list, that of the shortcut first, and with another epsilon."""


class BasicBlock(nn.Module):
    def __init__(self, in_channels, channels, stride=1):
        super().__init__()
        self.changes = stride != 1 or in_channels != channels
        self.norms = nn.ModuleList(nn.BatchNorm2d(channels, eps=1e-3) for _ in range(2 + self.changes))
        self.first = nn.Conv2d(in_channels, channels, 3, stride, 1, bias=False)
        self.second = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        if self.changes:
            self.around = nn.Conv2d(in_channels, channels, 1, stride, bias=False)

    def forward(self, x):
        *rest, first, second = self.norms
        y = second(self.second(torch.relu(first(self.first(x)))))
        return torch.relu(y + (rest[0](self.around(x)) if self.changes else x))
