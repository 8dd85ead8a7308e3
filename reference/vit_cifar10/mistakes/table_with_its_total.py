"""The last row is the total: with it, the numbers add up to twice as many as there are.

Leave the total out of the table, or print it beside it.

Look for: append(_) | extend(), return
"""


def parameter_table(model):
    rows = [(name, p.numel()) for name, p in model.named_parameters()]
    rows.append(("total", sum(number for _, number in rows)))
    return rows
