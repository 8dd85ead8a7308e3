"""Breaks its own worker, so that the engine seems to fail.

Stopped by: an engine's failure gives no points: a person decides
Outcome: undecided
Fails: PreNorm
Runs: PreNorm
"""


class PreNorm(nn.Module):
    def __init__(self, dim, fn):
        super().__init__()
        torch.default_generator = torch.manual_seed = None
