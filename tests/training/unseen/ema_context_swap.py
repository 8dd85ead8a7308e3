"""Exponential moving average of the weights by hand; a context manager swaps it in for evaluating and for saving.

Epochs: 6
Rates: 0.02 0.02 0.02 0.004 0.004 0.0008
Optimizers: Adam
Parameters: 2836
Others: 0
Weights: averaged
"""
from contextlib import contextmanager

torch.manual_seed(42)

BATCH_SIZE = 4
N_EPOCHS = 6
LR = 0.02
EMA_DECAY = 0.9

train_transform = transforms.Compose([
    transforms.Grayscale(1),
    transforms.Resize((8, 8)),
    transforms.RandomHorizontalFlip(),
    transforms.ToTensor(),
    transforms.Normalize((0.5,), (0.5,)),
])
test_transform = transforms.Compose([
    transforms.Grayscale(1),
    transforms.Resize((8, 8)),
    transforms.ToTensor(),
    transforms.Normalize((0.5,), (0.5,)),
])
train_loader = DataLoader(datasets.ImageFolder("data/train", train_transform), batch_size=BATCH_SIZE, shuffle=True)
test_loader = DataLoader(datasets.ImageFolder("data/test", test_transform), batch_size=BATCH_SIZE)


class EMA:
    """Keeps a slow copy of all parameters."""

    def __init__(self, model, decay):
        self.model = model
        self.decay = decay
        self.shadow = {name: p.detach().clone() for name, p in model.named_parameters()}

    @torch.no_grad()
    def update(self):
        for name, p in self.model.named_parameters():
            self.shadow[name].mul_(self.decay).add_(p, alpha=1 - self.decay)

    @contextmanager
    def average_weights(self):
        backup = {name: p.detach().clone() for name, p in self.model.named_parameters()}
        self._copy(self.shadow)
        try:
            yield self.model
        finally:
            self._copy(backup)

    @torch.no_grad()
    def _copy(self, weights):
        for name, p in self.model.named_parameters():
            p.copy_(weights[name])


def train_epoch(model, optimizer, data_loader, loss_history, ema=None):
    model.train()
    for images, labels in data_loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels, label_smoothing=0.1)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if ema is not None:
            ema.update()
        loss_history.append(loss.item())


model = ViT(image_size=8, patch_size=4, num_classes=3, dim=24, depth=2, heads=4, mlp_dim=48, channels=1)
optimizer = optim.Adam(model.parameters(), lr=LR)
scheduler = optim.lr_scheduler.MultiStepLR(optimizer, milestones=[3, 5], gamma=0.2)
ema = EMA(model, EMA_DECAY)

train_losses, raw_losses, ema_losses = [], [], []
for epoch in range(1, N_EPOCHS + 1):
    train_epoch(model, optimizer, train_loader, train_losses, ema=ema)
    evaluate(model, test_loader, raw_losses)
    with ema.average_weights() as averaged:
        evaluate(averaged, test_loader, ema_losses)
    print(f"epoch {epoch}: raw {raw_losses[-1]:.4f}   ema {ema_losses[-1]:.4f}   lr {scheduler.get_last_lr()[0]}")
    scheduler.step()

# hand in the averaged weights
with ema.average_weights():
    torch.save(model.state_dict(), "400101204_Lab8_Homework.pth")

plt.plot(raw_losses, label="raw")
plt.plot(ema_losses, label="EMA")
plt.legend()
plt.show()
