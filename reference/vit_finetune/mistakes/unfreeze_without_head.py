"""The head stays frozen; it should learn in any case."""


def unfreeze(model, blocks=None):
    head, layers, norm = parts(model)
    model.requires_grad_(blocks is None)
    for part in (norm, *(layers[len(layers) - (blocks or 0) :])):
        part.requires_grad_(True)
