"""The positions count from 1; they should count from 0.

At position 0 all sines are 0.

Look for: arange(1, _)
"""


def sinusoidal_positions(tokens, dim):
    position = torch.arange(1, tokens + 1, dtype=torch.float32)[:, None]
    frequency = torch.exp(torch.arange(0, dim, 2, dtype=torch.float32) * (-math.log(10000.0) / dim))
    table = torch.zeros(tokens, dim)
    table[:, 0::2] = torch.sin(position * frequency)
    table[:, 1::2] = torch.cos(position * frequency)
    return table
