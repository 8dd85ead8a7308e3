"""Nothing follows the sum; a ReLU should.

Look for: return
"""


class BasicBlock(BasicBlock):
    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        return self.bn2(self.conv2(y)) + self.shortcut(x)
