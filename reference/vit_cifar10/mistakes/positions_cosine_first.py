"""Sines and cosines are exchanged: the even columns should hold the sines.

Look for: cos()
"""


def sinusoidal_positions(tokens, dim):
    position = torch.arange(tokens, dtype=torch.float32)[:, None]
    frequency = torch.exp(torch.arange(0, dim, 2, dtype=torch.float32) * (-math.log(10000.0) / dim))
    table = torch.zeros(tokens, dim)
    table[:, 0::2] = torch.cos(position * frequency)
    table[:, 1::2] = torch.sin(position * frequency)
    return table
