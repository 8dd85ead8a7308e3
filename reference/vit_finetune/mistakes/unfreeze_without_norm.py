"""The final norm stays frozen; it should learn together with the head."""


def unfreeze(model, blocks=None):
    head, layers, norm = parts(model)
    model.requires_grad_(blocks is None)
    for part in (head, *(layers[len(layers) - (blocks or 0) :])):
        part.requires_grad_(True)
