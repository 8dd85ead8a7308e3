"""The model sees the whole window, and its last scores are left out."""


def next_token_loss(model, tokens):
    log_probabilities = model(tokens)[:, :-1].log_softmax(dim=-1)
    return -log_probabilities.gather(2, tokens[:, 1:, None]).mean()
