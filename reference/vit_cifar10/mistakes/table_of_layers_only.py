"""Parameters of the model itself, outside any layer, are missing from the table: class token and positions.

named_parameters has all of them.

Look for: named_children() | children()
"""


def parameter_table(model):
    return [(name, sum(p.numel() for p in part.parameters())) for name, part in model.named_children()]
