"""Both functions set every parameter by asking whether it belongs to what learns.
"""


def _only(model, learning):
    wanted = {id(p) for part in learning for p in part.parameters()}
    for p in model.parameters():
        p.requires_grad = id(p) in wanted


def freeze_backbone(model):
    _only(model, [parts(model)[0]])
    return model


def unfreeze(model, blocks=None):
    head, layers, norm = parts(model)
    if blocks is None:
        for p in model.parameters():
            p.requires_grad = True
        return model
    chosen = layers[-blocks:] if blocks else []
    _only(model, [head, norm, *chosen])
    return model
