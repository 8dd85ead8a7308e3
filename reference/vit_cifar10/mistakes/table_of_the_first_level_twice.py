"""Parts within parts are counted again: the numbers add up to more than there are.

Look for: named_modules() | modules()
"""


def parameter_table(model):
    parts = [(name, part) for name, part in model.named_modules()]
    return [(name or "all", sum(p.numel() for p in part.parameters())) for name, part in parts]
