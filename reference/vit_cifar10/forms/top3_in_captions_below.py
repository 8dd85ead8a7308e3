"""A figure for each image, with the likeliest classes in a text of the figure below it."""


def plot_top3(images, labels, probabilities, class_names, mean, std):
    for image, label, shares in zip(images, labels, probabilities, strict=True):
        plt.figure(figsize=(3, 3))
        plt.imshow(np.clip(np.asarray(image).transpose(1, 2, 0) * std + mean, 0, 1))
        plt.axis("off")
        plt.title(f"label = {class_names[int(label)]}")
        likely = np.argsort(-np.asarray(shares))[:3]
        text = "; ".join(f"{class_names[k]}: {100 * float(shares[k]):.0f}%" for k in likely)
        plt.figtext(0.5, 0.02, text, ha="center")
    plt.show()
