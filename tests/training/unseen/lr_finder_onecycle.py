"""Learning-rate range test on a throw-away copy of the model, then OneCycleLR, stepped in every batch, with the rate that was found.

Epochs: 4
Rates: 0.05534 0.0487 0.01698 0.0
Optimizers: AdamW
Parameters: 4292
Others: 1
Weights: last
"""
import copy
import numpy as np

torch.manual_seed(99)
np.random.seed(99)

N_EPOCHS = 4
BATCH_SIZE = 4

transform = transforms.Compose([
    transforms.Grayscale(num_output_channels=1),
    transforms.Resize((8, 8)),
    transforms.ToTensor(),
    transforms.Normalize((0.5,), (0.5,)),
])
train_loader = DataLoader(datasets.ImageFolder("data/train", transform=transform), batch_size=BATCH_SIZE, shuffle=True)
test_loader = DataLoader(datasets.ImageFolder("data/test", transform=transform), batch_size=BATCH_SIZE)


def find_lr(net, loader, start=1e-4, end=1.0, num_steps=27, beta=0.8):
    """Raises the rate exponentially; returns the rates and the smoothed losses (fastai style)."""
    net = copy.deepcopy(net)                 # the real model stays untouched
    opt = optim.AdamW(net.parameters(), lr=start)
    factor = (end / start) ** (1 / (num_steps - 1))
    rates, losses, avg = [], [], 0.0
    step = 0
    net.train()
    while step < num_steps:
        for x, y in loader:
            opt.zero_grad()
            loss = F.cross_entropy(net(x), y)
            loss.backward()
            opt.step()
            step += 1
            avg = beta * avg + (1 - beta) * loss.item()
            rates.append(opt.param_groups[0]["lr"])
            losses.append(avg / (1 - beta ** step))
            if step >= num_steps or losses[-1] > 4 * min(losses):
                return rates, losses
            opt.param_groups[0]["lr"] *= factor
    return rates, losses


def suggest(rates, losses):
    """A third of the rate at the lowest loss, rounded to one digit."""
    lr = rates[int(np.argmin(losses))] / 3
    return float(f"{lr:.0e}")


model = ViT(image_size=8, patch_size=4, num_classes=3, dim=32, depth=2, heads=4, mlp_dim=64, channels=1)

rates, losses = find_lr(model, train_loader)
max_lr = suggest(rates, losses)
print("suggested learning rate:", max_lr)
plt.semilogx(rates, losses)
plt.axvline(max_lr, linestyle="--")
plt.title("LR finder")
plt.show()

optimizer = optim.AdamW(model.parameters(), lr=max_lr, weight_decay=0.02)
scheduler = optim.lr_scheduler.OneCycleLR(optimizer, max_lr=max_lr, epochs=N_EPOCHS, steps_per_epoch=len(train_loader), pct_start=0.3)


def train_epoch(model, optimizer, data_loader, loss_history):
    model.train()
    for i, (images, labels) in enumerate(data_loader):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        scheduler.step()                     # OneCycle is stepped per batch!
        loss_history.append(loss.item())
        if i % 5 == 0:
            print(f"  [{i * len(images):3d}/{len(data_loader.dataset)}] loss {loss.item():.4f}")


train_loss_history, test_loss_history = [], []
for epoch in range(1, N_EPOCHS + 1):
    print("Epoch:", epoch)
    train_epoch(model, optimizer, train_loader, train_loss_history)
    evaluate(model, test_loader, test_loss_history)
    print(f"  test loss {test_loss_history[-1]:.4f}")

torch.save(model.state_dict(), "400101204_Lab8_Homework.pth")
