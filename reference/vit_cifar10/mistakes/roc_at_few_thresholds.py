"""The thresholds are a few fixed numbers, so that the curve cuts corners: each probability should be one.

Take np.unique of the class's probabilities, and one above them.

Look for: linspace() | arange()
"""


def plot_roc(targets, probabilities, class_names):
    targets, probabilities = np.asarray(targets), np.asarray(probabilities)
    _, ax = plt.subplots(figsize=(6, 6))
    for label, name in enumerate(class_names):
        positive, scores = targets == label, probabilities[:, label]
        thresholds = np.linspace(1, 0, 11)
        hits = [(scores[positive] >= threshold).mean() for threshold in thresholds]
        alarms = [(scores[~positive] >= threshold).mean() for threshold in thresholds]
        ax.plot(alarms, hits, label=name)
    ax.set_xlabel("False positive rate")
    ax.set_ylabel("True positive rate")
    ax.legend()
    plt.show()
