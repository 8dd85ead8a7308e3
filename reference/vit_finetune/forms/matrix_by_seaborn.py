"""The confusion matrix by seaborn.
"""


import seaborn as sns


def plot_confusion_matrix(matrix, class_names):
    plt.figure(figsize=(7, 6))
    sns.heatmap(np.asarray(matrix), annot=True, fmt="d", xticklabels=class_names, yticklabels=class_names)
    plt.xlabel("Predicted")
    plt.ylabel("True")
    plt.show()
