"""With blocks=None patches, class token and positions stay frozen; everything should learn.

model.requires_grad_(True)
"""


def unfreeze(model, blocks=None):
    head, layers, norm = parts(model)
    model.requires_grad_(False)
    for part in (head, norm, *(layers[len(layers) - (len(layers) if blocks is None else blocks) :])):
        part.requires_grad_(True)
