from torch import nn


class Perceptron(nn.Module):
    def __init__(self, side, channels, num_classes, hidden):
        super().__init__()
        self.inner = nn.Linear(channels * side * side, hidden)
        self.outer = nn.Linear(hidden, num_classes)

    def forward(self, x):
        return self.outer(self.inner(x.flatten(1)).relu())


def block(inputs, outputs):
    return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU())


class ConvNet(nn.Module):
    def __init__(self, channels, num_classes, width):
        super().__init__()
        self.blocks = nn.Sequential(block(channels, width), nn.MaxPool2d(2), block(width, 2 * width))
        self.head = nn.Linear(2 * width, num_classes)

    def forward(self, x):
        return self.head(self.blocks(x).amax(dim=(2, 3)))
