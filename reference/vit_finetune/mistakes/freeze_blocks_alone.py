"""Only the blocks are frozen: patches, class token, positions and norm still learn.

Freeze everything, then let the head learn.

Look for: requires_grad_(False), requires_grad
"""


def freeze_backbone(model):
    head, blocks, _ = parts(model)
    for block in blocks:
        block.requires_grad_(False)
    head.requires_grad_(True)
