"""Attention pictures in columns, the overlay blended by hand."""


def plot_attention(model, images, labels, class_names, mean, std):
    fig, axes = plt.subplots(3, len(images), figsize=(2 * len(images), 6), squeeze=False)
    colors = plt.get_cmap("inferno")
    for column, (image, label) in enumerate(zip(images, labels, strict=True)):
        plain = np.clip(image.cpu().permute(1, 2, 0).numpy() * np.array(std) + np.array(mean), 0, 1)
        heat = np.asarray(attention_map(model, image))
        axes[0][column].imshow(plain)
        axes[0][column].set_title(f"true: {class_names[int(label)]}")
        axes[1][column].imshow(heat)
        axes[2][column].imshow(0.5 * plain + 0.5 * colors(heat)[..., :3])
    return fig
