"""Measures from a confusion matrix by bincount, ROC-AUC by the trapezoids under its corners."""


def auc(positive, scores):
    if positive.all() or not positive.any():
        return np.nan
    order = np.argsort(-scores, kind="stable")
    scores, positive = scores[order], positive[order]
    last = np.append(scores[1:] != scores[:-1], True)
    hits = np.concatenate([[0], np.cumsum(positive)[last]]) / positive.sum()
    alarms = np.concatenate([[0], np.cumsum(~positive)[last]]) / (~positive).sum()
    return float(((alarms[1:] - alarms[:-1]) * (hits[1:] + hits[:-1]) / 2).sum())


def classification_metrics(targets, probabilities):
    targets, probabilities = np.asarray(targets).astype(int), np.asarray(probabilities)
    k = probabilities.shape[1]
    confusion = np.bincount(targets * k + probabilities.argmax(1), minlength=k * k).reshape(k, k)
    with np.errstate(divide="ignore", invalid="ignore"):
        precision = np.nan_to_num(np.diag(confusion) / confusion.sum(0))
        recall = np.nan_to_num(np.diag(confusion) / confusion.sum(1))
        f1 = np.nan_to_num(2 * precision * recall / (precision + recall))
    roc_auc = np.array([auc(targets == c, probabilities[:, c]) for c in range(k)])
    support = confusion.sum(1)
    result = {"confusion": confusion, "precision": precision, "recall": recall, "f1": f1, "support": support, "roc_auc": roc_auc}
    for name in ("precision", "recall", "f1", "roc_auc"):
        use = (support > 0) & np.isfinite(result[name])
        result["macro_" + name] = float(np.mean(result[name][use])) if use.any() else float("nan")
        result["weighted_" + name] = float(np.average(result[name][use], weights=support[use])) if use.any() else float("nan")
    return result
