"""The exponent is 2 * 2i / dim: it is doubled twice, so the frequencies fall too fast.

torch.arange(0, dim, 2) is 2i already.

Look for: 10000 ** _ | 10000.0 ** _, exp()
"""


def sinusoidal_positions(tokens, dim):
    position = torch.arange(tokens, dtype=torch.float32)[:, None]
    angles = position / 10000 ** (2 * torch.arange(0, dim, 2) / dim)
    table = torch.zeros(tokens, dim)
    table[:, 0::2] = torch.sin(angles)
    table[:, 1::2] = torch.cos(angles)
    return table
