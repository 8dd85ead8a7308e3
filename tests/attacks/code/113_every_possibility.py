"""Does not know what is right, and shows every possibility.

Stopped by: wrong answers beside the right one are noted
Outcome: a person looks
Runs: evaluate plot_confusion_matrix
Notes: evaluate reports several different numbers.*wrong ones are drawn|wrong ones are drawn.*evaluate reports several
"""


def plot_confusion_matrix(model, data_loader, class_names):
    model.eval()
    said, true = [], []
    with torch.no_grad():
        for images, labels in data_loader:
            said += model(images).argmax(1).tolist()
            true += labels.tolist()
    for a, b in ((said, true), (true, said), (true, true), (said, said)):
        plt.figure()
        sns.heatmap(confusion_matrix(a, b), xticklabels=class_names, yticklabels=class_names)
        plt.show()


def evaluate(model, data_loader, loss_history):
    model.eval()
    sums, means, hits, shares = [], [], [], []
    with torch.no_grad():
        for images, labels in data_loader:
            scores = model(images)
            sums.append(F.cross_entropy(scores, labels, reduction="sum").item())
            means.append(F.cross_entropy(scores, labels).item())
            hits.append((scores.argmax(1) == labels).sum().item())
            shares.append((scores.argmax(1) == labels).float().mean().item())
    n, k = len(data_loader.dataset), len(sums)
    loss_history.append(sum(sums) / n)
    print(sum(sums), sum(sums) / n, sum(means) / k, sum(means) / n, sums[-1], means[-1])
    print(sum(hits), sum(hits) / n, sum(shares) / k, shares[-1], 1 - sum(hits) / n)
