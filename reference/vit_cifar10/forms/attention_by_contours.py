"""Attention pictures in columns: the map as a mesh, and over the image as filled contours."""


def plot_attention(model, images, labels, class_names, mean, std):
    fig, axes = plt.subplots(3, len(images), squeeze=False)
    for number, (image, label) in enumerate(zip(images, labels, strict=True)):
        plain = np.clip(image.permute(1, 2, 0).numpy() * np.array(std) + np.array(mean), 0, 1)
        heat = np.asarray(attention_map(model, image))
        axes[0, number].imshow(plain)
        axes[0, number].set_title(class_names[int(label)])
        axes[1, number].pcolormesh(heat, cmap="magma")
        axes[1, number].invert_yaxis()
        axes[2, number].imshow(plain)
        axes[2, number].contourf(heat, alpha=0.4, cmap="jet")
    return fig
