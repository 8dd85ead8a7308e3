"""Stratified k-fold chooses learning rate, depth and the number of epochs; then a fresh model is trained on all training images.

Epochs: 5
Rates: 0.05 0.035 0.0245 0.01715 0.012
Optimizers: AdamW
Parameters: 1636
Others: 9
Weights: last
"""
import numpy as np
from sklearn.model_selection import StratifiedKFold
from torch.utils.data import Subset

STUDENT_ID = "400101204"
SEED = 7
BATCH_SIZE = 4
MAX_EPOCHS = 5

np.random.seed(SEED)
torch.manual_seed(SEED)

transform = transforms.Compose([
    transforms.Grayscale(num_output_channels=1),
    transforms.Resize((8, 8)),
    transforms.ToTensor(),
    transforms.Normalize((0.5,), (0.5,)),
])
train_set = datasets.ImageFolder("data/train", transform=transform)
test_set = datasets.ImageFolder("data/test", transform=transform)


def build(depth):
    return ViT(image_size=8, patch_size=4, num_classes=3, dim=16, depth=depth, heads=2, mlp_dim=32, channels=1)


def fit(model, lr, n_epochs, loader, val_loader=None):
    """Trains the model and returns the curves."""
    optimizer = optim.AdamW(model.parameters(), lr=lr, weight_decay=0.01)
    scheduler = optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.7)
    train_losses, val_losses = [], []
    for epoch in range(n_epochs):
        train_epoch(model, optimizer, loader, train_losses)
        if val_loader is not None:
            evaluate(model, val_loader, val_losses)
        scheduler.step()
    return train_losses, val_losses


# ---- 3-fold cross-validation: the test images are not touched here ----
candidates = [
    {"lr": 0.001, "depth": 1},
    {"lr": 0.01, "depth": 2},
    {"lr": 0.05, "depth": 2},
]
kfold = StratifiedKFold(n_splits=3, shuffle=True, random_state=SEED)
cv_table = []
for params in candidates:
    curves = []
    for fold, (train_idx, val_idx) in enumerate(kfold.split(np.zeros(len(train_set)), train_set.targets)):
        fold_train = DataLoader(Subset(train_set, train_idx.tolist()), batch_size=BATCH_SIZE, shuffle=True)
        fold_val = DataLoader(Subset(train_set, val_idx.tolist()), batch_size=BATCH_SIZE)
        model = build(params["depth"])
        _, val_losses = fit(model, params["lr"], MAX_EPOCHS, fold_train, fold_val)
        curves.append(val_losses)
        print(f"{params} fold {fold + 1}: {val_losses[-1]:.4f}")
    mean_curve = np.mean(curves, axis=0)
    cv_table.append((mean_curve.min(), int(mean_curve.argmin()) + 1, params))

cv_table.sort(key=lambda row: row[0])
for loss, epochs, params in cv_table:
    print(f"cv loss {loss:.4f} after {epochs} epochs with {params}")
_, best_epochs, best_params = cv_table[0]

# ---- final training, all training images ----
torch.manual_seed(SEED)
train_loader = DataLoader(train_set, batch_size=BATCH_SIZE, shuffle=True)
test_loader = DataLoader(test_set, batch_size=BATCH_SIZE)
model = build(best_params["depth"])
train_losses, _ = fit(model, best_params["lr"], best_epochs, train_loader)

test_losses = []
evaluate(model, test_loader, test_losses)
print("test loss of the retrained model:", round(test_losses[0], 4))
torch.save(model.state_dict(), f"{STUDENT_ID}_Lab8_Homework.pth")

plt.plot(train_losses)
plt.xlabel("batch")
plt.ylabel("training loss")
plt.show()
