"""Attention gives another output each time for the same input, in evaluation mode and with dropout=0:
something is drawn at random in forward.

Make layers and parameters in __init__ and write nn.Dropout(dropout), which model.eval() switches off.

Look for: F.dropout(), rand() | randn() | rand_like() | randn_like() | randperm() | normal_(), Linear()
"""


class Attention(Attention):
    def forward(self, x):
        return F.dropout(super().forward(x), 0.1)
