"""The curves do not begin at (0, 0), where no image is called positive.

Look for: unique() | sort() | argsort(), plot()
"""


def plot_roc(targets, probabilities, class_names):
    targets, probabilities = np.asarray(targets), np.asarray(probabilities)
    _, ax = plt.subplots(figsize=(6, 6))
    for label, name in enumerate(class_names):
        positive, scores = targets == label, probabilities[:, label]
        thresholds = np.unique(scores)[::-1]
        hits = [(scores[positive] >= threshold).mean() for threshold in thresholds]
        alarms = [(scores[~positive] >= threshold).mean() for threshold in thresholds]
        ax.plot(alarms, hits, label=name)
    ax.set_xlabel("False positive rate")
    ax.set_ylabel("True positive rate")
    ax.legend()
    plt.show()
