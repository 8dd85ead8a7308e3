"""The probabilities are given to softmax once more, which makes them nearly alike.

Look for: softmax()
"""


def plot_top3(images, labels, probabilities, class_names, mean, std):
    _, axes = plt.subplots(1, len(images), figsize=(2.6 * len(images), 3.4), squeeze=False)
    for ax, image, label, scores in zip(axes[0], images, labels, probabilities, strict=True):
        ax.imshow(shown(image, mean, std))
        shares = torch.softmax(torch.as_tensor(scores), dim=0)
        lines = [f"{class_names[int(k)]} {float(p):.1%}" for p, k in zip(*shares.topk(3), strict=True)]
        ax.set_title("\n".join([f"true: {class_names[int(label)]}", *lines]), fontsize=8)
    plt.show()
