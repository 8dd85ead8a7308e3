"""Ends the program while it is loaded.

Stopped by: every statement is executed by itself
Outcome: its component fails
Fails: PreNorm FeedForward
Says: SystemExit
Runs: PreNorm FeedForward evaluate
"""


class PreNorm(nn.Module):
    raise SystemExit(0)


class FeedForward(nn.Module):
    raise KeyboardInterrupt
