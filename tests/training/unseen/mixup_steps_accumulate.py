"""Counted in updates and not in epochs: an endless stream of batches, mixup, gradients accumulated over three batches, warm-up and linear decay by hand.

Epochs: 5
Rates: 0.02 0.01667 0.01167 0.00667 0.00167
Optimizers: AdamW
Parameters: 3532
Others: 0
Weights: last
Ambiguous: nothing in the script is called an epoch; 15 updates of 3 batches of 4 are 45 batches, exactly 5 passes over the 36 images.
"""
import numpy as np

np.random.seed(21)
torch.manual_seed(21)

BATCH_SIZE = 4
ACCUMULATE = 3          # 4 x 3 = 12 images per update
MAX_UPDATES = 15
WARMUP_UPDATES = 3
EVAL_EVERY = 5
BASE_LR = 0.02
MIXUP_ALPHA = 0.2

transform = transforms.Compose([
    transforms.Grayscale(num_output_channels=1),
    transforms.Resize((8, 8)),
    transforms.ToTensor(),
    transforms.Normalize((0.5,), (0.5,)),
])
train_loader = DataLoader(datasets.ImageFolder("data/train", transform=transform), batch_size=BATCH_SIZE, shuffle=True, drop_last=True)
test_loader = DataLoader(datasets.ImageFolder("data/test", transform=transform), batch_size=BATCH_SIZE)


def endless(loader):
    while True:
        yield from loader


def mixup(x, y):
    lam = np.random.beta(MIXUP_ALPHA, MIXUP_ALPHA)
    order = torch.randperm(len(x))
    return lam * x + (1 - lam) * x[order], y, y[order], lam


def lr_at(update):
    if update < WARMUP_UPDATES:
        return BASE_LR * (update + 1) / WARMUP_UPDATES
    return BASE_LR * (MAX_UPDATES - update) / (MAX_UPDATES - WARMUP_UPDATES)


model = ViT(image_size=8, patch_size=4, num_classes=3, dim=28, depth=2, heads=4, mlp_dim=56, channels=1)
optimizer = optim.AdamW(model.parameters(), lr=BASE_LR, weight_decay=0.05)

stream = endless(train_loader)
train_losses, test_losses, test_at = [], [], []
for update in range(MAX_UPDATES):
    model.train()
    for group in optimizer.param_groups:
        group["lr"] = lr_at(update)
    optimizer.zero_grad()
    total = 0.0
    for _ in range(ACCUMULATE):
        images, labels = next(stream)
        mixed, first, second, lam = mixup(images, labels)
        output = model(mixed)
        loss = lam * F.cross_entropy(output, first) + (1 - lam) * F.cross_entropy(output, second)
        (loss / ACCUMULATE).backward()
        total += loss.item() / ACCUMULATE
    torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=2.0)
    optimizer.step()
    train_losses.append(total)
    if (update + 1) % EVAL_EVERY == 0:
        evaluate(model, test_loader, test_losses)
        test_at.append(update + 1)
        print(f"update {update + 1}/{MAX_UPDATES}: lr {lr_at(update):.5f} train {np.mean(train_losses[-EVAL_EVERY:]):.4f} test {test_losses[-1]:.4f}")

torch.save(model.state_dict(), "400101204_Lab8_Homework.pth")

plt.plot(range(1, MAX_UPDATES + 1), train_losses, label="train (mixup)")
plt.plot(test_at, test_losses, "o-", label="test")
plt.xlabel("update")
plt.legend()
plt.show()
