"""Three models with different seeds are trained in one function, their mean output is tried as an ensemble, and the best of them on validation is saved.

Epochs: 4
Rates: 0.002 0.0015 0.001 0.0005
Optimizers: Adam
Parameters: 904
Others: 2
Weights: last
Ambiguous: Epochs and Rates: only those of the saved member (seed 0, best on validation) are counted; all three members together have 12 epochs, with the same rates 4 by 4.
"""
import random
import numpy as np

SEEDS = [0, 1, 2]
EPOCHS = 4

mean, std = (0.5,), (0.5,)
train_tf = transforms.Compose([transforms.Grayscale(), transforms.Resize((8, 8)), transforms.RandomHorizontalFlip(),
                               transforms.ToTensor(), transforms.Normalize(mean, std)])
test_tf = transforms.Compose([transforms.Grayscale(), transforms.Resize((8, 8)), transforms.ToTensor(), transforms.Normalize(mean, std)])

# the same folder twice, because the validation images must not be augmented
train_aug = datasets.ImageFolder("data/train", train_tf)
train_plain = datasets.ImageFolder("data/train", test_tf)
test_data = datasets.ImageFolder("data/test", test_tf)
perm = np.random.RandomState(123).permutation(len(train_aug)).tolist()
val_part, train_part = perm[:12], perm[12:]
train_loader = DataLoader(torch.utils.data.Subset(train_aug, train_part), batch_size=4, shuffle=True)
val_loader = DataLoader(torch.utils.data.Subset(train_plain, val_part), batch_size=4)
test_loader = DataLoader(test_data, batch_size=4)


def seed_everything(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def train_member(seed):
    seed_everything(seed)
    model = ViT(image_size=8, patch_size=4, num_classes=3, channels=1, dim=10, depth=2, heads=2, mlp_dim=20)
    optimizer = optim.Adam(model.parameters(), lr=2e-3)
    scheduler = optim.lr_scheduler.LinearLR(optimizer, start_factor=1.0, end_factor=0.25, total_iters=EPOCHS - 1)
    train_hist, val_hist = [], []
    for epoch in range(EPOCHS):
        train_epoch(model, optimizer, train_loader, train_hist)
        evaluate(model, val_loader, val_hist)
        scheduler.step()
    print(f"seed {seed}: val losses", [round(v, 3) for v in val_hist])
    return model, train_hist, val_hist


models, curves, val_losses = [], {}, []
for seed in SEEDS:
    m, train_hist, val_hist = train_member(seed)
    models.append(m)
    curves[seed] = train_hist
    val_losses.append(val_hist[-1])


@torch.no_grad()
def ensemble_accuracy(members, loader):
    for m in members:
        m.eval()
    correct = 0
    for x, y in loader:
        probs = torch.stack([m(x).softmax(dim=-1) for m in members]).mean(dim=0)
        correct += (probs.argmax(dim=-1) == y).sum().item()
    return correct / len(loader.dataset)


for seed, m in zip(SEEDS, models):
    print("seed", seed, "test accuracy", ensemble_accuracy([m], test_loader))
print("ensemble of", len(models), "test accuracy", ensemble_accuracy(models, test_loader))

# only one .pth may be handed in -> the best single model (on validation)
best = int(np.argmin(val_losses))
model = models[best]
print("best seed:", SEEDS[best], "val loss", val_losses[best])
torch.save(model.state_dict(), "400101204_Lab8_Homework.pth")

for seed, c in curves.items():
    plt.plot(c, label=f"seed {seed}")
plt.legend()
plt.savefig("seeds.png")
