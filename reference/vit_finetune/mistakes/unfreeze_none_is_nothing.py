"""With blocks=None no block learns; it means everything.

Tell None from 0: blocks is None.
"""


def unfreeze(model, blocks=None):
    head, layers, norm = parts(model)
    model.requires_grad_(False)
    for part in (head, norm, *(layers[len(layers) - (blocks or 0) :])):
        part.requires_grad_(True)
