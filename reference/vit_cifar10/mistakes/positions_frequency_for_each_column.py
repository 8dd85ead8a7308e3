"""Each column has a frequency of its own; the sine and the cosine of a pair share theirs.

The exponent is 2i / dim for both columns 2i and 2i + 1.
"""


def sinusoidal_positions(tokens, dim):
    position = torch.arange(tokens, dtype=torch.float32)[:, None]
    angles = position / 10000 ** (torch.arange(dim) / dim)
    table = angles.clone()
    table[:, 0::2] = torch.sin(angles[:, 0::2])
    table[:, 1::2] = torch.cos(angles[:, 1::2])
    return table
