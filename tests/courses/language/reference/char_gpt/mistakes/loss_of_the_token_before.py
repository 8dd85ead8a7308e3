"""The scores are compared with the token before.

Targets come after their inputs.
"""


def next_token_loss(model, tokens):
    return F.cross_entropy(model(tokens[:, 1:]).flatten(0, 1), tokens[:, :-1].flatten())
