"""Everything is frozen, even the head: nothing learns.

Look for: requires_grad_(False), requires_grad
"""


def freeze_backbone(model):
    for weights in model.parameters():
        weights.requires_grad = False
