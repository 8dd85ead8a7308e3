"""Never finishes to define a class.

Stopped by: the clock runs outside
Outcome: all fails
Fails: PreNorm FeedForward
Says: did not return within
Runs: PreNorm FeedForward
"""


class PreNorm(nn.Module):
    while True:
        pass
