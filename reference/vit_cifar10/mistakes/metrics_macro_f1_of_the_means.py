"""The macro F1 is made from the macro precision and the macro recall; it should be the mean of the classes'
F1.

Compute F1 class by class, and let macro_f1 be its mean over the classes with support.
"""


class _Right:
    measures = staticmethod(classification_metrics)


def classification_metrics(targets, probabilities):
    found = dict(_Right.measures(targets, probabilities))
    precision, recall = found["macro_precision"], found["macro_recall"]
    found["macro_f1"] = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    return found
