"""With blocks=0 all blocks learn: a list's [-0:] is the whole list.

blocks[len(blocks) - n:]

Look for: _[-_:]
"""


def unfreeze(model, blocks=None):
    head, layers, norm = parts(model)
    model.requires_grad_(blocks is None)
    for part in (head, norm, *(layers[-(blocks or 0) :])):
        part.requires_grad_(True)
