"""freeze_backbone by way of unfreeze.
"""


def unfreeze(model, blocks=None):
    head, layers, norm = parts(model)
    if blocks is None:
        model.requires_grad_()
        return
    model.requires_grad_(False)
    for module in [head, norm]:
        module.requires_grad_()
    for number, layer in enumerate(layers):
        layer.requires_grad_(number >= len(layers) - blocks)


def freeze_backbone(model):
    unfreeze(model, 0)
    parts(model)[2].requires_grad_(False)
