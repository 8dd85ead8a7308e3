"""The first blocks are unfrozen; the last ones should be, which are nearest to the head.

blocks[-n:]

Look for: _[:_]
"""


def unfreeze(model, blocks=None):
    head, layers, norm = parts(model)
    model.requires_grad_(blocks is None)
    for part in (head, norm, *(layers[: blocks or 0])):
        part.requires_grad_(True)
