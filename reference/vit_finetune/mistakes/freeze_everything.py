"""Everything is frozen, and the head too: nothing learns.

Look for: requires_grad_(False), requires_grad
"""


def freeze_backbone(model):
    for weights in model.parameters():
        weights.requires_grad = False
