"""Sines in the first half of the columns, cosines in the second.

Policy: concatenated_positions
"""


def sinusoidal_positions(tokens, dim):
    angles = torch.arange(tokens)[:, None] / 10000 ** (torch.arange(0, dim, 2) / dim)
    return torch.cat([angles.sin(), angles.cos()], dim=1)
