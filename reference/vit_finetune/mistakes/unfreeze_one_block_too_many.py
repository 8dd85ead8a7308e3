"""One more block learns than was asked for."""


def unfreeze(model, blocks=None):
    head, layers, norm = parts(model)
    model.requires_grad_(blocks is None)
    for part in (head, norm, *(layers[max(len(layers) - (blocks or 0) - 1, 0) :])):
        part.requires_grad_(True)
