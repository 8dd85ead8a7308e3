"""What learned before goes on learning: with a number of blocks, all else should be frozen.

Freeze everything first.
"""


def unfreeze(model, blocks=None):
    head, layers, norm = parts(model)
    if blocks is None:
        model.requires_grad_(True)
    for part in (head, norm, *(layers[len(layers) - (blocks or 0) :])):
        part.requires_grad_(True)
