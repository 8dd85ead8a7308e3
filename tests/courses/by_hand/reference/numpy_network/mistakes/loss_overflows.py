"""For large scores the exponentials overflow, and the loss is infinite or no number.

Take off the largest score of each example before np.exp: the softmax stays the same.

Look for: exp
"""


def softmax_cross_entropy(scores, labels):
    with np.errstate(all="ignore"):
        exponentials = np.exp(scores)
        probabilities = exponentials / exponentials.sum(axis=1, keepdims=True)
        rows = np.arange(len(labels))
        gradient = probabilities.copy()
        gradient[rows, labels] -= 1
        return -np.log(probabilities[rows, labels]).mean(), gradient / len(labels)
