"""The last four parameters learn, however they are called: the final norm is among them.

parts(model) gives the head.
"""


def freeze_backbone(model):
    weights = list(model.parameters())
    for each in weights[:-4]:
        each.requires_grad_(False)
    for each in weights[-4:]:
        each.requires_grad_(True)
