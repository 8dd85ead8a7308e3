"""The second convolution has the stride; the first one should."""


class BasicBlock(BasicBlock):
    def __init__(self, in_channels, channels, stride=1):
        super().__init__(in_channels, channels, stride)
        self.conv1.stride, self.conv2.stride = (1, 1), (stride, stride)
