"""The loss is a sum over the tokens, where it should be their mean.

reduction="mean".
"""


def next_token_loss(model, tokens):
    return F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten(), reduction="sum")
