"""Kernels, gains and shifts in lists, statistics in buffers, everything else by functions."""


class BasicBlock(nn.Module):
    def __init__(self, in_channels, channels, stride=1):
        super().__init__()
        self.stride = stride
        shapes = [(channels, in_channels, 3, 3), (channels, channels, 3, 3)]
        if stride != 1 or in_channels != channels:
            shapes.append((channels, in_channels, 1, 1))
        self.kernels = nn.ParameterList(nn.init.kaiming_normal_(nn.Parameter(torch.empty(shape))) for shape in shapes)
        self.gains = nn.ParameterList(nn.Parameter(torch.ones(channels)) for _ in shapes)
        self.shifts = nn.ParameterList(nn.Parameter(torch.zeros(channels)) for _ in shapes)
        for number in range(len(shapes)):
            self.register_buffer(f"mean_{number}", torch.zeros(channels))
            self.register_buffer(f"variance_{number}", torch.ones(channels))

    def layer(self, number, x, stride=1):
        kernel = self.kernels[number]
        x = F.conv2d(x, kernel, stride=stride, padding=kernel.shape[-1] // 2)
        statistics = self.get_buffer(f"mean_{number}"), self.get_buffer(f"variance_{number}")
        return F.batch_norm(x, *statistics, self.gains[number], self.shifts[number], self.training)

    def forward(self, x):
        y = self.layer(1, F.relu(self.layer(0, x, self.stride)))
        return F.relu(y + (self.layer(2, x, self.stride) if len(self.kernels) == 3 else x))
