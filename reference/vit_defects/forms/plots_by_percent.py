"""seaborn with percentages in a data frame; a random choice of examples from the data set, texts on images.

Policy: shares_in_place_of_counts
"""

import pandas as pd


def plot_confusion_matrix(model, data_loader, class_names):
    model.eval()
    preds, trues = torch.tensor([]), torch.tensor([])
    for x, y in data_loader:
        preds = torch.cat((preds, model(x.to(device)).detach().argmax(1).cpu()))
        trues = torch.cat((trues, y))
    cm = confusion_matrix(trues, preds, labels=range(len(class_names)))
    frame = pd.DataFrame(cm / cm.sum(axis=1, keepdims=True) * 100, index=class_names, columns=class_names)
    plt.figure(figsize=(9, 7))
    sns.heatmap(frame, annot=True, fmt=".1f")
    plt.xlabel("Predicted")
    plt.ylabel("Actual")
    plt.show()


def plot_classwise_predictions(model, data_loader, class_names, samples_per_class=4):
    model.eval()
    dataset = data_loader.dataset
    fig = plt.figure(figsize=(10, 14))
    for c in range(len(class_names)):
        chosen = random.sample([i for i, t in enumerate(dataset.targets) if t == c], samples_per_class)
        for k, index in enumerate(chosen):
            image, label = dataset[index]
            with torch.no_grad():
                predicted = class_names[model(image[None].to(device)).argmax().item()]
            ax = fig.add_subplot(len(class_names), samples_per_class, c * samples_per_class + k + 1)
            ax.imshow(image[0], cmap="gray")
            ax.text(0, -3, f"{dataset.classes[label].title()} -> {predicted.upper()}", fontsize=6)
            ax.axis("off")
    plt.tight_layout()
    plt.show()
