"""What the gradient that reaches the scores tells of a loss: arrays (images, classes), one batch's.

p is the softmax of the scores, one_hot the labels as rows of 0 and 1.
"""

import numpy as np


def cross_entropy_factor(gradient, p, one_hot):
    """(factor, smoothing, rest) of a gradient as a multiple of that of the cross-entropy.

    With label smoothing, a share of every label is moved to all classes evenly: the gradient is
    p - (1 - share) one_hot - share / classes. Source: Szegedy et al. (2016), section 7.
    """
    even = one_hot - 1 / one_hot.shape[1]
    columns = np.stack([(p - one_hot).ravel(), even.ravel()], axis=1)
    found = np.linalg.lstsq(columns, gradient.ravel(), rcond=None)[0]
    size = max(np.abs(gradient).max(), 1e-12)
    rest = np.abs(columns @ found - gradient.ravel()).max() / size
    return found[0], found[1] / (found[0] or 1e-12), rest


def own_share(gradient, p, one_hot):
    """The share of each image's own label, where another image of the batch has the rest; else None."""
    for scaled in (len(gradient) * gradient, gradient):
        targets = p - scaled
        share = (targets * one_hot).sum(axis=1).min()
        if share > 0.98:
            others = one_hot
        else:
            others = ((targets - share * one_hot) / (1 - share)).round()
        same_labels = (others.sum(axis=0) == one_hot.sum(axis=0)).all() and (others.sum(axis=1) == 1).all()
        mixture = share * one_hot + (1 - share) * others
        if (
            share > -1e-3
            and same_labels
            and np.abs(targets - mixture).max() < 2e-3 + (0.02 if share > 0.98 else 0)
        ):
            return share
    return None


def is_unusual(gradient, p, one_hot):
    """Whether a gradient is that of a loss which teaches the labels, though it is not a plain cross-entropy.

    A loss of the right class's probability alone has rows that are multiples of p - one_hot: with weights
    of classes, or a focus on what is hard (Lin et al., 2017), never on what is easy. Soft labels (mixup,
    Zhang et al., 2018) have rows p - t, where t is for the most part the own label. One sigmoid for each
    class has sigmoid(scores) - one_hot. A small penalty on the scores leaves the gradient nearer to the plain
    one than to that of any known mistake.
    """
    plain = p - one_hot
    factors = (gradient * plain).sum(axis=1) / np.maximum((plain * plain).sum(axis=1), 1e-12)
    size = np.abs(gradient).max()
    if np.abs(gradient - factors[:, None] * plain).max() < 1e-3 * size and (factors > 0).all():
        by_class = [np.ptp(factors[one_hot[:, label] == 1]) for label in np.flatnonzero(one_hot.sum(axis=0))]
        easy = (p * one_hot).sum(axis=1)
        harder = np.corrcoef(np.argsort(np.argsort(easy)), np.argsort(np.argsort(factors)))[0, 1] < 0
        return max(by_class) < 1e-2 * factors.max() or bool(harder)
    for scale in (len(gradient), 1):
        targets = p - scale * gradient
        own = (targets * one_hot).sum(axis=1)
        if np.abs(targets.sum(axis=1) - 1).max() < 1e-3 and targets.min() > -1e-3 and own.min() > 0.5 - 1e-3:
            return True
    return is_sigmoid(gradient, np.log(p), one_hot) or is_mostly_plain(gradient, p, one_hot)


def is_mostly_plain(gradient, p, one_hot):
    """Whether a gradient points nearly where the cross-entropy's does, and nearer than a mistake's does."""
    known = (-one_hot, (p * one_hot).sum(axis=1, keepdims=True) * (p - one_hot), softmax_twice(p, one_hot))
    plain, *wrong = (alignment(gradient, other) for other in (p - one_hot, *known))
    return plain > 0.98 and plain > max(wrong)


def softmax_twice(p, one_hot):
    """The gradient at the scores if their softmax goes into a cross-entropy, which takes it once more."""
    outer = softmax(p) - one_hot
    return p * (outer - (outer * p).sum(axis=1, keepdims=True))  # through the softmax's own derivative


def alignment(gradient, other):
    """The cosine of the angle between two gradients."""
    return (gradient * other).sum() / max(np.linalg.norm(gradient) * np.linalg.norm(other), 1e-12)


def is_sigmoid(gradient, scores, one_hot):
    """Whether a gradient is a multiple of sigmoid(scores + c) - one_hot, with a c of its own in each row."""
    for factor in (1.0, 1 / one_hot.shape[1], 1 / len(gradient), 1 / one_hot.size):
        shares = gradient / factor + one_hot
        if shares.min() > 0 and shares.max() < 1:
            rest = np.log(shares / (1 - shares)) - scores
            if np.ptp(rest, axis=1).max() < 1e-2:
                return True
    return False


def softmax(scores):
    """Over the classes, (n, classes)."""
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)
