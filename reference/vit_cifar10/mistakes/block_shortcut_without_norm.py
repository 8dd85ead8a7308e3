"""The shortcut's convolution has no norm.

Look for: Conv2d(_, _, 1) | Conv2d(_, _, kernel_size=1)
"""


class BasicBlock(BasicBlock):
    def __init__(self, in_channels, channels, stride=1):
        super().__init__(in_channels, channels, stride)
        if stride != 1 or in_channels != channels:
            self.shortcut = nn.Conv2d(in_channels, channels, 1, stride=stride, bias=False)
