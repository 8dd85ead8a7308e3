"""A row for each parameter."""


def parameter_table(model):
    return [(name, parameter.numel()) for name, parameter in model.named_parameters()]
