"""A dataclass holds the settings.

Epochs: 2
Rates: 0.2 0.2
Optimizer: SGD"""

from dataclasses import dataclass


@dataclass
class Config:
    epochs: int = 2
    lr: float = 0.2
    momentum: float = 0.5
    dim: int = 8


config = Config()
transform = transforms.Compose([transforms.Resize((8, 8)), transforms.Grayscale(1), transforms.ToTensor()])
train_dataset = datasets.ImageFolder("data/train", transform=transform)
test_dataset = datasets.ImageFolder("data/test", transform=transform)
train_loader = DataLoader(train_dataset, batch_size=4, shuffle=True)
test_loader = DataLoader(test_dataset, batch_size=4)
model = ViT(image_size=8, patch_size=4, num_classes=3, channels=1, dim=config.dim, depth=1, heads=1, mlp_dim=8)
optimizer = optim.SGD(model.parameters(), lr=config.lr, momentum=config.momentum)
loss_history = {"train": [], "test": []}
for _ in range(config.epochs):
    train_epoch(model, optimizer, train_loader, loss_history["train"])
    evaluate(model, test_loader, loss_history["test"])
