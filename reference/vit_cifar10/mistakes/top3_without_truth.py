"""The images are shown without their true class.

Look for: set_title() | title()
"""


def plot_top3(images, labels, probabilities, class_names, mean, std):
    _, axes = plt.subplots(1, len(images), figsize=(2.6 * len(images), 3.4), squeeze=False)
    for ax, image, label, shares in zip(axes[0], images, labels, probabilities, strict=True):
        ax.imshow(shown(image, mean, std))
        best = torch.as_tensor(shares).topk(3)
        lines = [f"{class_names[int(k)]} {float(p):.1%}" for p, k in zip(*best, strict=True)]
        ax.set_title("\n".join(lines), fontsize=8)
    plt.show()
