"""Nothing goes around the convolutions: the shortcut is missing.

Look for: return
"""


class BasicBlock(BasicBlock):
    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(y)))
