"""Each column has a frequency of its own; the sine and the cosine of a pair should share theirs.

Columns 2i and 2i + 1 have the same exponent, 2i / dim: the cosine takes its sine's angle.

Look for: 10000 ** _ | 10000.0 ** _, exp()
"""


def sinusoidal_positions(tokens, dim):
    position = torch.arange(tokens, dtype=torch.float32)[:, None]
    angles = position / 10000 ** (torch.arange(dim) / dim)
    table = angles.clone()
    table[:, 0::2] = torch.sin(angles[:, 0::2])
    table[:, 1::2] = torch.cos(angles[:, 1::2])
    return table
