"""The names on the axes do not stand beside the rows and columns of their own classes.

Look for: set_yticks() | yticks() | set_yticklabels(), set_xticks() | xticks() | set_xticklabels()
"""


def plot_confusion_matrix(matrix, class_names):
    _, ax = plt.subplots(figsize=(8, 7))
    ax.imshow(matrix, cmap="Blues")
    ax.set_xticks(range(len(class_names)), class_names)
    ax.set_yticks(range(len(class_names)), class_names[::-1])
    ax.set_xlabel("Predicted class")
    ax.set_ylabel("True class")
    plt.show()
