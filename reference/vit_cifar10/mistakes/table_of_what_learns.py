"""Only parameters that are learned are counted; those that are not belong to the model as well.

Look for: requires_grad
"""


def parameter_table(model):
    return [(name, weights.numel()) for name, weights in model.named_parameters() if weights.requires_grad]
