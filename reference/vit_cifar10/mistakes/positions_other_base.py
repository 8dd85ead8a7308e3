"""The frequencies fall with a base other than 10000.

Look for: log() | _ ** _
"""


def sinusoidal_positions(tokens, dim):
    position = torch.arange(tokens, dtype=torch.float32)[:, None]
    frequency = torch.exp(torch.arange(0, dim, 2, dtype=torch.float32) * (-math.log(1000.0) / dim))
    table = torch.zeros(tokens, dim)
    table[:, 0::2] = torch.sin(position * frequency)
    table[:, 1::2] = torch.cos(position * frequency)
    return table
