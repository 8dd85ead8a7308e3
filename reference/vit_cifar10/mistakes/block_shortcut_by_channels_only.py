"""The shortcut is a convolution only where the number of channels changes; with stride=2 it should be one,
too, because the sizes differ.
"""


class BasicBlock(BasicBlock):
    def __init__(self, in_channels, channels, stride=1):
        super().__init__(in_channels, channels, stride)
        if in_channels == channels:
            self.shortcut = nn.Sequential()
