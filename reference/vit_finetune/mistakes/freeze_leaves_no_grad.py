"""The backbone runs under no_grad from now on, even when it should learn again: no gradient reaches it.

Set requires_grad, and leave the model's forward alone.

Look for: no_grad()
"""


def freeze_backbone(model):
    head, blocks, _ = parts(model)
    model.requires_grad_(False)
    head.requires_grad_(True)
    for block in blocks:
        block.forward = torch.no_grad()(block.forward)
