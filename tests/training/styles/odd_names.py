"""Loaders that are called anything.

Epochs: 2
Rates: 0.1 0.1
Optimizer: SGD"""

pipeline = transforms.Compose([transforms.Resize((8, 8)), transforms.Grayscale(1), transforms.ToTensor()])
a = datasets.ImageFolder("steel/train", transform=pipeline)
b = datasets.ImageFolder("steel/validation", transform=pipeline)
feed = DataLoader(a, batch_size=4, shuffle=True)
probe = DataLoader(b, batch_size=4, shuffle=False)
brain = ViT(image_size=8, patch_size=4, num_classes=3, channels=1, dim=8, depth=1, heads=1, mlp_dim=8)
fixer = optim.SGD(brain.parameters(), lr=0.1)
for lap in range(2):
    train_epoch(brain, fixer, feed, [])
    evaluate(brain, probe, [])
