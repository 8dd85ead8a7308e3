"""The table of positions with numpy, number by number."""


def sinusoidal_positions(tokens, dim):
    table = np.zeros((tokens, dim))
    for position in range(tokens):
        for i in range(dim // 2):
            angle = position / 10000 ** (2 * i / dim)
            table[position, 2 * i] = np.sin(angle)
            table[position, 2 * i + 1] = np.cos(angle)
    return torch.tensor(table, dtype=torch.float32)
