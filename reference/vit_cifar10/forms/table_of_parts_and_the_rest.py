"""A row for each child, and one for what is the model's own."""


def parameter_table(model):
    rows = [[name, sum(p.numel() for p in child.parameters())] for name, child in model.named_children()]
    rows.append(["own", sum(p.numel() for p in model.parameters(recurse=False))])
    return rows
