"""scikit-learn counts without being given the classes, so that one without images has no row.

Policy: row_of_absent_class_missing
"""

from sklearn import metrics


def asked(model, data_loader):
    for batch, wanted in data_loader:
        with torch.inference_mode():
            yield wanted.numpy(), model.eval()(batch.to(device)).cpu().numpy().argmax(-1)


def plot_confusion_matrix(model, data_loader, class_names):
    answers = list(asked(model, data_loader))
    wanted = [int(w) for side, _ in answers for w in side]
    given = [int(g) for _, side in answers for g in side]
    canvas = plt.figure(figsize=(7, 6)).gca()
    table = metrics.confusion_matrix(y_true=wanted, y_pred=given)
    sns.heatmap(table, ax=canvas, annot=True, fmt=".0f", cbar=False, cmap="magma")
    canvas.set(xlabel="prediction", ylabel="truth", title=f"{len(wanted)} test images")
    canvas.set_xticklabels(class_names[: len(table)], rotation=30)
    canvas.set_yticklabels(class_names[: len(table)], rotation=0)
    plt.show()


def plot_classwise_predictions(model, data_loader, class_names, samples_per_class=4):
    left = {number: samples_per_class for number in range(len(class_names))}
    panels = []
    for pixels, wanted in data_loader:
        with torch.inference_mode():
            given = model.eval()(pixels.to(device)).cpu().numpy().argmax(-1)
        for spot in range(len(wanted)):
            number = int(wanted[spot])
            if left[number] > 0:
                left[number] -= 1
                panels.append((number, int(given[spot]), pixels[spot].mean(0).numpy()))
    panels.sort(key=lambda panel: panel[0])
    plt.figure(figsize=(2.2 * samples_per_class, 2.4 * len(class_names)))
    for place, (truth, prediction, gray) in enumerate(panels, start=1):
        spot = plt.subplot(len(class_names), samples_per_class, place)
        spot.imshow(gray, cmap="bone")
        spot.set_xticks([]), spot.set_yticks([])
        spot.set_ylabel(f"true: {class_names[truth]}", fontsize=7)
        spot.set_title(f"predicted: {class_names[prediction]}", fontsize=7)
    plt.show()
