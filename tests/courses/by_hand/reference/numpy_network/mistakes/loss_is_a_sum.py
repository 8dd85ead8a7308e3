"""The loss is the sum over the batch, where it should be the mean.

Divide by the number of examples.

Look for: sum, mean
"""


def softmax_cross_entropy(scores, labels, right=softmax_cross_entropy):
    loss, gradient = right(scores, labels)
    return loss * len(labels), gradient
