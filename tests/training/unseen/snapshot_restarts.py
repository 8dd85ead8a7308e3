"""Snapshot ensemble: cosine per batch with warm restarts by hand, one snapshot per cycle; the best single snapshot is handed in.

Epochs: 6
Rates: 0.05889 0.00126 0.05889 0.00126 0.05889 0.00126
Optimizers: SGD
Parameters: 2624
Others: 0
Weights: best
Ambiguous: the run is 6 epochs long; the snapshot that is handed in (highest accuracy, first of equals) is that of cycle 1, after 2 epochs.
"""
import copy
import math
import os

torch.manual_seed(11)

CYCLES = 3
EPOCHS_PER_CYCLE = 2
LR_MAX = 0.1
LR_MIN = 0.0005
BATCH_SIZE = 4

transform = transforms.Compose([
    transforms.Resize((8, 8)),
    transforms.Grayscale(),
    transforms.ToTensor(),
    transforms.Normalize([0.5], [0.5]),
])
train_loader = DataLoader(datasets.ImageFolder("data/train", transform), batch_size=BATCH_SIZE, shuffle=True)
test_loader = DataLoader(datasets.ImageFolder("data/test", transform), batch_size=BATCH_SIZE, shuffle=False)

model = ViT(image_size=8, patch_size=4, num_classes=3, dim=20, depth=3, heads=4, mlp_dim=40, channels=1)
optimizer = optim.SGD(model.parameters(), lr=LR_MAX, momentum=0.9, nesterov=True)
steps_per_cycle = EPOCHS_PER_CYCLE * len(train_loader)


def cyclic_lr(step):
    """Huang et al. 2017, equation 2."""
    t = (step % steps_per_cycle) / steps_per_cycle
    return LR_MIN + (LR_MAX - LR_MIN) * 0.5 * (math.cos(math.pi * t) + 1)


def accuracy_of(predict):
    hits = total = 0
    with torch.no_grad():
        for x, y in test_loader:
            hits += (predict(x).argmax(dim=1) == y).sum().item()
            total += len(y)
    return hits / total


os.makedirs("snapshots", exist_ok=True)
snapshots = []
lrs, train_losses, test_losses = [], [], []
step = 0
for cycle in range(CYCLES):
    for epoch in range(EPOCHS_PER_CYCLE):
        model.train()
        for x, y in train_loader:
            for group in optimizer.param_groups:
                group["lr"] = cyclic_lr(step)
            lrs.append(optimizer.param_groups[0]["lr"])
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            train_losses.append(loss.item())
            step += 1
    evaluate(model, test_loader, test_losses)
    model.eval()
    snapshots.append({"cycle": cycle, "loss": test_losses[-1], "acc": accuracy_of(model), "state": copy.deepcopy(model.state_dict())})
    torch.save(model.state_dict(), f"snapshots/cycle_{cycle}.pth")
    print(f"cycle {cycle + 1}: test loss {snapshots[-1]['loss']:.4f}, accuracy {snapshots[-1]['acc']:.3f}")

# the ensemble, for the report only: one file must be handed in
members = []
for snap in snapshots:
    member = ViT(image_size=8, patch_size=4, num_classes=3, dim=20, depth=3, heads=4, mlp_dim=40, channels=1)
    member.load_state_dict(snap["state"])
    members.append(member.eval())
print("ensemble accuracy:", accuracy_of(lambda x: sum(F.softmax(m(x), dim=1) for m in members)))

best = max(snapshots, key=lambda s: s["acc"])
print("handing in the snapshot of cycle", best["cycle"] + 1)
model.load_state_dict(best["state"])
torch.save(model.state_dict(), "400101204_Lab8_Homework.pth")

fig, (a, b) = plt.subplots(1, 2, figsize=(10, 3))
a.plot(lrs)
a.set_title("learning rate")
b.plot(train_losses)
b.set_title("training loss")
plt.show()
