"""The three likeliest classes as text beside each image, by numpy."""


def plot_top3(images, labels, probabilities, class_names, mean, std):
    shares = np.asarray(probabilities)
    fig = plt.figure(figsize=(4, 2.2 * len(images)))
    for number, image in enumerate(images):
        ax = fig.add_subplot(len(images), 1, number + 1)
        ax.imshow(np.clip(np.asarray(image).transpose(1, 2, 0) * std + mean, 0, 1))
        order = np.argsort(shares[number])[::-1][:3]
        text = ", ".join(f"{class_names[k]} ({100 * shares[number][k]:.0f} %)" for k in order)
        ax.set_ylabel(f"label: {class_names[int(labels[number])]}")
        ax.set_title(text)
    return fig
