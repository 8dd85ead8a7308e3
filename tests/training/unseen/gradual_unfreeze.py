"""Gradual unfreezing from the head downwards, a table of stages, a new optimizer for each stage, lower rates for lower layers.

Epochs: 6
Rates: 0.05 0.02 0.02 0.004 0.004 0.004
Optimizers: SGD Adam
Parameters: 4292
Others: 0
Weights: last
"""
from time import perf_counter

torch.manual_seed(2024)

BATCH_SIZE = 4
data_transform = transforms.Compose([
    transforms.Grayscale(num_output_channels=1),
    transforms.Resize((8, 8)),
    transforms.ToTensor(),
    transforms.Normalize((0.5,), (0.5,)),
])
train_dataset = datasets.ImageFolder(root="data/train", transform=data_transform)
test_dataset = datasets.ImageFolder(root="data/test", transform=data_transform)
train_loader = DataLoader(train_dataset, batch_size=BATCH_SIZE, shuffle=True)
test_loader = DataLoader(test_dataset, batch_size=BATCH_SIZE, shuffle=False)

model = ViT(image_size=8, patch_size=4, num_classes=len(train_dataset.classes), dim=32, depth=2, heads=4, mlp_dim=64, channels=1)


class StageTimer:
    def __init__(self, name):
        self.name = name

    def __enter__(self):
        self.start = perf_counter()
        print(f"--- {self.name} ---")
        return self

    def __exit__(self, *exc):
        print(f"--- {self.name}: {perf_counter() - self.start:.2f} s ---")
        return False


def set_trainable(*parts):
    """Freezes the whole model but the given parts."""
    for p in model.parameters():
        p.requires_grad = False
    for part in parts:
        for p in part.parameters():
            p.requires_grad = True
    n = sum(p.numel() for p in model.parameters() if p.requires_grad)
    print(f"{n} of {sum(p.numel() for p in model.parameters())} parameters are trainable")


def sgd_on_trainable(lr):
    return optim.SGD((p for p in model.parameters() if p.requires_grad), lr=lr, momentum=0.9)


def adam_by_layer(lr):
    # lower layers change more slowly
    return optim.Adam([
        {"params": model.head.parameters(), "lr": lr},
        {"params": model.blocks.parameters(), "lr": lr / 2},
        {"params": model.body.parameters(), "lr": lr / 4},
        {"params": [model.scale], "lr": lr / 4},
    ])


STAGES = [
    # name, what is trained, optimizer, rate, epochs
    ("head only", lambda: set_trainable(model.head), sgd_on_trainable, 0.05, 1),
    ("head + last block", lambda: set_trainable(model.head, model.blocks[-1]), sgd_on_trainable, 0.02, 2),
    ("everything", lambda: set_trainable(model), adam_by_layer, 0.004, 3),
]

history = {"stage": [], "train": [], "test": []}
for name, unfreeze, make_optimizer, lr, epochs in STAGES:
    with StageTimer(name):
        unfreeze()
        optimizer = make_optimizer(lr)
        for epoch in range(epochs):
            losses = []
            train_epoch(model, optimizer, train_loader, losses)
            evaluate(model, test_loader, history["test"])
            history["train"].append(sum(losses) / len(losses))
            history["stage"].append(name)
            print(f"epoch {epoch + 1}/{epochs}: train {history['train'][-1]:.4f} test {history['test'][-1]:.4f}")

torch.save(model.state_dict(), "400101204_Lab8_Homework.pth")

plt.plot(history["train"], "o-", label="train")
plt.plot(history["test"], "o-", label="test")
for i in range(1, len(history["stage"])):
    if history["stage"][i] != history["stage"][i - 1]:
        plt.axvline(i - 0.5, color="gray", linestyle=":")
plt.legend()
plt.show()
