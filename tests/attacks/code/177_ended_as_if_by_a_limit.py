"""Ends its own process by the signals that limits send, so that they seem to have ended it.

Stopped by: a process cannot end itself by signals, and what a limit did is told by our own measurement
Outcome: its component fails
Fails: evaluate PreNorm
"""

import signal


class PreNorm(nn.Module):
    def __init__(self, dim, fn):
        super().__init__()
        self.norm = nn.LayerNorm(dim)

    def forward(self, x, **kwargs):
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        signal.raise_signal(signal.SIGXFSZ)


def evaluate(model, data_loader, loss_history):
    signal.signal(signal.SIGXCPU, signal.SIG_DFL)
    signal.raise_signal(signal.SIGXCPU)
