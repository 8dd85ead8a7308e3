"""What is measured of a trained model."""

import numpy as np


def bits_per_character(outputs, targets):
    """The mean code length of the next characters: outputs (n, block, characters), targets int64 (n,)."""
    scores = outputs[:, -1].astype(np.float64)
    scores = scores - scores.max(axis=1, keepdims=True)
    log_likelihood = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    return -log_likelihood[np.arange(len(targets)), targets].mean() / np.log(2)
