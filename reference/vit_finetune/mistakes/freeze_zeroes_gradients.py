"""Gradients are set to zero, but everything still requires them: weight decay and momentum move the weights.

requires_grad_(False) freezes.

Look for: register_hook() | zeros_like()
"""


def freeze_backbone(model):
    head, _, _ = parts(model)
    own = {id(weights) for weights in head.parameters()}
    for weights in model.parameters():
        if weights.requires_grad and id(weights) not in own:
            weights.register_hook(torch.zeros_like)
