"`ClassificationInterpretation`, self-made: measures in numpy, and pictures"
import csv
import math

import matplotlib.pyplot as plt
import numpy as np
import torch

__all__ = [
    "classification_metrics", "export_metrics", "attention_map", "plot_learning_curves", "plot_confusion_matrix",
    "plot_roc", "plot_attention", "plot_top3", "show_image", "get_grid",
]


class Interpretation:
    def __init__(self, targs, probs):
        self.targs, self.probs = np.asarray(targs).astype(int).ravel(), np.asarray(probs)
        self.c = self.probs.shape[1]
        self.preds = self.probs.argmax(1)

    def confusion(self):
        cm, _, _ = np.histogram2d(self.targs, self.preds, bins=np.arange(self.c + 1) - 0.5, range=None)
        return cm.astype(int)

    def roc(self, k):
        "Points of the curve of class `k`: one after each group of equal probabilities; None if it has none"
        pos = self.targs == k
        if pos.all() or not pos.any():
            return None
        order = np.argsort(-self.probs[:, k], kind="mergesort")
        p, y = self.probs[order, k], pos[order]
        last = np.r_[np.flatnonzero(np.diff(p)), len(p) - 1]
        tp, fp = np.cumsum(y)[last], np.cumsum(~y)[last]
        return np.r_[0, fp] / (~pos).sum(), np.r_[0, tp] / pos.sum()

    def auc(self, k):
        "Area by trapezoids, where a tie is a slanted piece: counts one half"
        curve = self.roc(k)
        if curve is None:
            return math.nan
        x, y = curve
        return float(((y[1:] + y[:-1]) / 2 * (x[1:] - x[:-1])).sum())


def _div(a, b):
    return np.array([x / y if y else 0.0 for x, y in zip(a, b)], float)


def classification_metrics(targets, probabilities):
    itp = Interpretation(targets, probabilities)
    cm = itp.confusion()
    tp, support, called = cm.diagonal(), cm.sum(1), cm.sum(0)
    precision, recall = _div(tp, called), _div(tp, support)
    res = dict(
        precision=precision,
        recall=recall,
        f1=_div(2 * precision * recall, precision + recall),
        roc_auc=np.array([itp.auc(k) for k in range(itp.c)]),
    )
    present = support > 0
    for name in list(res):
        v, w = res[name][present], support[present]
        v, w = v[~np.isnan(v)], w[~np.isnan(v)]
        res["macro_" + name] = float(v.mean()) if len(v) else math.nan
        res["weighted_" + name] = float((v * w).sum() / w.sum()) if len(v) else math.nan
    n = len(itp.targs)
    return dict(confusion=cm, support=support, accuracy=float(tp.sum() / n) if n else 0.0, **res)


def export_metrics(metrics, path):
    flat = {}

    def _flatten(prefix, o):
        if isinstance(o, torch.Tensor):
            o = o.detach().cpu().numpy()
        if isinstance(o, (list, tuple, np.ndarray)) and np.ndim(o) == 1:
            o = dict(enumerate(o))
        if isinstance(o, dict):
            for k, v in o.items():
                _flatten(f"{prefix}.{k}" if prefix else str(k), v)
        elif np.ndim(o) == 0:
            flat[prefix] = float(o)

    _flatten("", metrics)
    with open(path, "w", newline="", encoding="utf8") as f:
        w = csv.DictWriter(f, ["metric", "value"])
        w.writeheader()
        w.writerows(dict(metric=k, value=v) for k, v in flat.items())


def attention_map(model, image):
    training = model.training
    dev = next(model.parameters()).device
    with torch.no_grad():
        w = model.eval().attention(image[None].to(dev)).mean(1)[0]
    model.train(training)
    n = w.shape[0]
    a = w.mean(0) if math.isqrt(n) ** 2 == n else w[0, 1:]
    g = math.isqrt(len(a))
    a = a / a.max().clamp(min=1e-30)
    return torch.nn.functional.interpolate(a.view(1, 1, g, g), size=image.shape[-2:], mode="nearest")[0, 0].cpu()


def show_image(im, ax=None, title=None, **kwargs):
    ax = ax or plt.subplots()[1]
    ax.imshow(im, **kwargs)
    if title is not None:
        ax.set_title(title, fontsize=9)
    ax.axis("off")
    return ax


def get_grid(nrows, ncols, imsize=2):
    fig, axs = plt.subplots(nrows, ncols, figsize=(ncols * imsize, nrows * imsize), squeeze=False)
    return fig, axs


def decode(im, mean, std):
    im = im.detach().cpu()
    m, s = (torch.as_tensor(o, dtype=im.dtype)[:, None, None] for o in (mean, std))
    return (im * s + m).clamp(0, 1).permute(1, 2, 0)


def plot_learning_curves(history):
    fig, axs = get_grid(1, 2, 4)
    xs = np.arange(len(history)) + 1
    for ax, what in zip(axs.flat, ("loss", "accuracy")):
        for part, name in (("train", "training"), ("valid", "validation")):
            ax.plot(xs, history[f"{part}_{what}"], ".-", label=f"{name} {what}")
        ax.set(xlabel="epoch", ylabel=what)
        ax.legend()
    fig.tight_layout()
    return fig


def plot_confusion_matrix(matrix, class_names):
    cm = np.asarray(matrix)
    fig, ax = plt.subplots(figsize=(7, 7))
    ax.imshow(cm, interpolation="nearest", cmap="Blues")
    ax.set(title="Confusion matrix", xlabel="Predicted", ylabel="Actual")
    ticks = np.arange(len(class_names))
    ax.set_xticks(ticks, class_names, rotation=90)
    ax.set_yticks(ticks, class_names, rotation=0)
    thresh = cm.max() / 2.0
    for i in range(len(cm)):
        for j in range(len(cm)):
            ax.text(j, i, f"{cm[i, j]:.0f}", ha="center", va="center", color="white" if cm[i, j] > thresh else "black")
    fig.tight_layout()
    return fig


def plot_roc(targets, probabilities, class_names):
    itp = Interpretation(targets, probabilities)
    fig, ax = plt.subplots(figsize=(6, 5))
    for k in range(itp.c):
        curve = itp.roc(k)
        if curve is not None:
            ax.plot(*curve, label=f"{class_names[k]}, AUC {itp.auc(k):.2f}")
    ax.set(xlabel="false positive rate", ylabel="true positive rate", title="one against the rest")
    ax.legend(fontsize=7)
    return fig


def plot_attention(model, images, labels, class_names, mean, std):
    fig, axs = get_grid(len(images), 3)
    for (a, b, c), im, y in zip(axs, images, labels):
        rgb, amap = decode(im, mean, std), attention_map(model, im)
        show_image(rgb, a, class_names[int(y)])
        show_image(amap, b, "attention", cmap="magma", vmin=0, vmax=1)
        show_image(rgb, c, "overlay")
        show_image(amap, c, cmap="magma", alpha=0.6, vmin=0, vmax=1)
    fig.tight_layout()
    return fig


def plot_top3(images, labels, probabilities, class_names, mean, std):
    "Like `show_results`: the truth over the guesses"
    probs = torch.as_tensor(probabilities)
    fig, axs = get_grid(1, len(images), 2.4)
    for ax, im, y, p in zip(axs.flat, images, labels, probs):
        vals, idxs = p.topk(min(3, len(p)))
        guesses = "\n".join(f"{class_names[int(i)]} {float(v):.3f}" for v, i in zip(vals, idxs))
        show_image(decode(im, mean, std), ax, f"[{class_names[int(y)]}]\n{guesses}")
    fig.tight_layout()
    return fig
