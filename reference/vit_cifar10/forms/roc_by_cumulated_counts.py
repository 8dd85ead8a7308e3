"""The ROC curves by cumulated counts, a panel for each class."""


def plot_roc(targets, probabilities, class_names):
    targets, probabilities = np.asarray(targets), np.asarray(probabilities)
    fig, axes = plt.subplots(1, len(class_names), figsize=(3 * len(class_names), 3), squeeze=False)
    for label, ax in enumerate(axes[0]):
        order = np.argsort(-probabilities[:, label])
        hit = targets[order] == label
        tpr = np.concatenate([[0], np.cumsum(hit) / max(hit.sum(), 1)])
        fpr = np.concatenate([[0], np.cumsum(~hit) / max((~hit).sum(), 1)])
        ax.plot(fpr, tpr, label=f"{class_names[label]} vs. rest")
        ax.set_xlabel("FPR")
        ax.set_ylabel("TPR")
        ax.legend()
    fig.tight_layout()
    return fig
