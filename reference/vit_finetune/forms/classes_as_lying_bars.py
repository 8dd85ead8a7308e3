"""The accuracies as horizontal bars, in percent, with numbers; names on the left.
"""


def plot_per_class(names, accuracies):
    order = list(range(len(names)))
    fig, ax = plt.subplots()
    values = [100 * float(a) for a in accuracies]
    ax.barh(order, values)
    ax.set_yticks(order)
    ax.set_yticklabels(names)
    for y, value in zip(order, values):
        if not math.isnan(value):
            ax.text(value, y, f"{value:.0f} %")
    ax.set_title("Accuracy of each class")
    return fig
