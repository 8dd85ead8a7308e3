"""Nothing is drawn: no figure is made of the confusion matrix. Printed numbers alone are not a picture.

Draw the counts with seaborn.heatmap or plt.imshow, with class_names as tick labels, then plt.show().

Look for: confusion_matrix(), print(), body
"""


@torch.no_grad()
def plot_confusion_matrix(model, data_loader, class_names):
    model.eval()
    true, predicted = [], []
    for images, labels in data_loader:
        predicted += model(images).argmax(dim=1).tolist()
        true += labels.tolist()
    print(confusion_matrix(true, predicted))
