"""The confusion matrix by seaborn, in shares of the rows."""


def plot_confusion_matrix(matrix, class_names):
    import seaborn as sns

    matrix = np.asarray(matrix, dtype=float)
    shares = matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1)
    fig, ax = plt.subplots(figsize=(7, 6))
    sns.heatmap(shares, annot=True, fmt=".2f", xticklabels=class_names, yticklabels=class_names, ax=ax)
    ax.set(xlabel="Predicted", ylabel="True")
    return fig
