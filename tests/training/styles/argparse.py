"""Settings from the command line's defaults.

Epochs: 2
Rates: 0.05 0.05
Optimizer: SGD"""

import argparse

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=2)
parser.add_argument("--lr", type=float, default=5e-2)
parser.add_argument("--batch-size", type=int, default=4)
args, _ = parser.parse_known_args()
transform = transforms.Compose([transforms.Resize((8, 8)), transforms.Grayscale(1), transforms.ToTensor()])
train_dataset = datasets.ImageFolder("data/train", transform=transform)
test_dataset = datasets.ImageFolder("data/test", transform=transform)
train_loader = DataLoader(train_dataset, batch_size=4, shuffle=True)
test_loader = DataLoader(test_dataset, batch_size=4)
model = ViT(image_size=8, patch_size=4, num_classes=3, channels=1, dim=8, depth=1, heads=1, mlp_dim=8)
optimizer = optim.SGD(model.parameters(), lr=args.lr)
losses = []
for epoch in range(args.epochs):
    train_epoch(model, optimizer, train_loader, losses)
