"""The names of the classes are not on the axes.

Look for: imshow() | heatmap() | matshow()
"""


def plot_confusion_matrix(matrix, class_names):
    _, ax = plt.subplots(figsize=(8, 7))
    ax.imshow(matrix, cmap="Blues")
    ax.set_xlabel("Predicted class")
    ax.set_ylabel("True class")
    plt.show()
