"""Measures class by class, ROC-AUC by comparing all pairs, in lists."""


def classification_metrics(targets, probabilities):
    y, p = np.array(targets), np.array(probabilities)
    n_classes, guess = p.shape[1], p.argmax(axis=1)
    out = {name: [] for name in ("precision", "recall", "f1", "support", "roc_auc")}
    for c in range(n_classes):
        tp = int(((guess == c) & (y == c)).sum())
        fp, fn = int(((guess == c) & (y != c)).sum()), int(((guess != c) & (y == c)).sum())
        precision = tp / (tp + fp) if tp + fp else 0.0
        recall = tp / (tp + fn) if tp + fn else 0.0
        out["precision"].append(precision)
        out["recall"].append(recall)
        out["f1"].append(2 * precision * recall / (precision + recall) if precision + recall else 0.0)
        out["support"].append(tp + fn)
        yes, no = p[y == c, c], p[y != c, c]
        pairs = (yes[:, None] > no[None, :]).sum() + 0.5 * (yes[:, None] == no[None, :]).sum()
        out["roc_auc"].append(pairs / (len(yes) * len(no)) if len(yes) and len(no) else float("nan"))
    out = {name: np.array(values) for name, values in out.items()}
    there = out["support"] > 0
    for name in ("precision", "recall", "f1", "roc_auc"):
        known = there & ~np.isnan(out[name])
        plain, weights = out[name][known], out["support"][known]
        out[f"macro_{name}"] = plain.mean() if known.any() else np.nan
        out[f"weighted_{name}"] = (plain * weights).sum() / weights.sum() if known.any() else np.nan
    out["confusion"] = np.array([[((y == a) & (guess == b)).sum() for b in range(n_classes)] for a in range(n_classes)])
    out["accuracy"] = (y == guess).mean()
    return out
