"""The table of positions by stacking sines and cosines, in double precision."""


def sinusoidal_positions(tokens, dim):
    exponent = torch.arange(0, dim, 2, dtype=torch.float64) / dim
    angles = torch.outer(torch.arange(tokens, dtype=torch.float64), 10000.0**-exponent)
    return torch.stack([angles.sin(), angles.cos()], dim=2).flatten(1).float()
