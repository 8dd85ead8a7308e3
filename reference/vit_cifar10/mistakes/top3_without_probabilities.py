"""The three likeliest classes are named without their probabilities.

Look for: topk() | argsort() | sort()
"""


def plot_top3(images, labels, probabilities, class_names, mean, std):
    _, axes = plt.subplots(1, len(images), figsize=(2.6 * len(images), 3.4), squeeze=False)
    for ax, image, label, shares in zip(axes[0], images, labels, probabilities, strict=True):
        ax.imshow(shown(image, mean, std))
        best = torch.as_tensor(shares).topk(3).indices
        lines = [class_names[int(k)] for k in best]
        ax.set_title("\n".join([f"true: {class_names[int(label)]}", *lines]), fontsize=8)
    plt.show()
