"""The normalization is undone with mean and std exchanged.

image * std + mean, for each channel.

Look for: _ * mean + std, imshow()
"""


def plot_top3(images, labels, probabilities, class_names, mean, std):
    _, axes = plt.subplots(1, len(images), figsize=(2.6 * len(images), 3.4), squeeze=False)
    for ax, image, label, shares in zip(axes[0], images, labels, probabilities, strict=True):
        ax.imshow((image.permute(1, 2, 0) * torch.tensor(mean) + torch.tensor(std)).clamp(0, 1).numpy())
        best = torch.as_tensor(shares).topk(3)
        lines = [f"{class_names[int(k)]} {float(p):.1%}" for p, k in zip(*best, strict=True)]
        ax.set_title("\n".join([f"true: {class_names[int(label)]}", *lines]), fontsize=8)
    plt.show()
