"""scikit-learn's display, shares of rows; examples by true class, denormalized, three channels, labels below.

Policy: shares_in_place_of_counts
"""

from collections import defaultdict

from sklearn.metrics import ConfusionMatrixDisplay


def plot_confusion_matrix(model, data_loader, class_names):
    y_true, y_pred = [], []
    model.eval()
    with torch.no_grad():
        for images, labels in data_loader:
            y_pred += model(images.to(device)).argmax(1).tolist()
            y_true += labels.tolist()
    disp = ConfusionMatrixDisplay.from_predictions(
        y_true, y_pred, labels=range(len(class_names)), display_labels=class_names, normalize="true"
    )
    disp.ax_.set_title("Confusion")
    plt.tight_layout()
    plt.show()


def plot_classwise_predictions(model, data_loader, class_names, samples_per_class=4):
    model.eval()
    by_class = defaultdict(list)
    for images, labels in data_loader:
        with torch.no_grad():
            preds = torch.argmax(model(images.to(device)), dim=1).cpu()
        for img, lab, pred in zip(images, labels, preds):
            if len(by_class[lab.item()]) < samples_per_class:
                by_class[lab.item()].append((img, pred.item()))
        if all(len(by_class[c]) == samples_per_class for c in range(len(class_names))):
            break
    for c, name in enumerate(class_names):
        fig, axs = plt.subplots(1, samples_per_class, figsize=(10, 3))
        fig.suptitle(name)
        for ax, (img, pred) in zip(axs.flat, by_class[c]):
            picture = (img * 0.5 + 0.5).clamp(0, 1).repeat(3, 1, 1)
            ax.imshow(picture.numpy().transpose(1, 2, 0))
            ax.set_xlabel("Pred: " + class_names[pred][:8])
            ax.set_xticks([])
            ax.set_yticks([])
        plt.show()
