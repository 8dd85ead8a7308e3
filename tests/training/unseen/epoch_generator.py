"""Training is a generator that yields after every epoch and receives the next learning rate by send(); the loop outside decides.

Epochs: 6
Rates: 0.0025 0.005 0.01 0.006 0.0036 0.00216
Optimizers: RMSprop
Parameters: 1364
Others: 0
Weights: last
"""
from collections import namedtuple

torch.manual_seed(5)

Report = namedtuple("Report", "epoch lr train_loss test_loss")

tfm = transforms.Compose([transforms.Grayscale(), transforms.Resize((8, 8)), transforms.ToTensor(), transforms.Normalize(0.5, 0.5)])
loaders = {
    split: DataLoader(datasets.ImageFolder(f"data/{split}", tfm), batch_size=4, shuffle=(split == "train"))
    for split in ("train", "test")
}


def training(model, lr):
    """Yields a Report after each epoch. What is sent back is the learning rate of the next one (None: unchanged)."""
    optimizer = optim.RMSprop(model.parameters(), lr=lr)
    epoch = 0
    while True:
        epoch += 1
        train_losses, test_losses = [], []
        train_epoch(model, optimizer, loaders["train"], train_losses)
        evaluate(model, loaders["test"], test_losses)
        new_lr = yield Report(epoch, optimizer.param_groups[0]["lr"], sum(train_losses) / len(train_losses), test_losses[0])
        if new_lr is not None:
            for group in optimizer.param_groups:
                group["lr"] = new_lr


def drive(run, max_epochs):
    """Warm-up for two epochs, then the rate falls by 40 % an epoch."""
    reports = [next(run)]
    while len(reports) < max_epochs:
        last = reports[-1]
        print(f"{last.epoch:2d}  lr {last.lr:.5f}  train {last.train_loss:.4f}  test {last.test_loss:.4f}")
        next_lr = last.lr * 2 if last.epoch < 3 else last.lr * 0.6
        reports.append(run.send(next_lr))
    run.close()
    return reports


model = ViT(image_size=8, patch_size=4, num_classes=3, dim=16, depth=1, heads=2, mlp_dim=32, channels=1)
reports = drive(training(model, lr=0.0025), max_epochs=6)
print("last:", reports[-1])

torch.save(model.state_dict(), "400101204_Lab8_Homework.pth")

epochs, lrs, train_curve, test_curve = zip(*reports)
plt.plot(epochs, train_curve, label="train")
plt.plot(epochs, test_curve, label="test")
plt.legend()
plt.show()
