"""The cells are shares of the true class in whole percent, with the classes in alphabetical order.
"""


def plot_confusion_matrix(matrix, class_names):
    order = np.argsort(class_names)
    counts = np.asarray(matrix, dtype=float)[np.ix_(order, order)]
    percent = np.round(100 * counts / counts.sum(axis=1, keepdims=True))
    names = [class_names[i] for i in order]
    plt.imshow(percent, vmin=0, vmax=100)
    for (i, j), share in np.ndenumerate(percent):
        plt.text(j, i, f"{share:.0f}%", ha="center", va="center")
    plt.xticks(range(len(names)), names)
    plt.yticks(range(len(names)), names)
    plt.xlabel("predicted class")
    plt.ylabel("true class")
    plt.show()
