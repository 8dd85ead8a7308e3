"""Everything is frozen, and the head too: nothing learns."""


def freeze_backbone(model):
    for weights in model.parameters():
        weights.requires_grad = False
