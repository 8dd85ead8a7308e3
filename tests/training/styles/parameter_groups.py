"""A rate of its own for a part of the model.

Epochs: 2
Rates: 0.01 0.01
Optimizer: AdamW"""

transform = transforms.Compose([transforms.Resize((8, 8)), transforms.Grayscale(1), transforms.ToTensor()])
train_dataset = datasets.ImageFolder("data/train", transform=transform)
test_dataset = datasets.ImageFolder("data/test", transform=transform)
train_loader = DataLoader(train_dataset, batch_size=4, shuffle=True)
test_loader = DataLoader(test_dataset, batch_size=4)
model = ViT(image_size=8, patch_size=4, num_classes=3, channels=1, dim=8, depth=1, heads=1, mlp_dim=8)
head = [p for n, p in model.named_parameters() if "head" in n]
rest = [p for n, p in model.named_parameters() if "head" not in n]
optimizer = optim.AdamW([{"params": head, "lr": 0.01}, {"params": rest}], lr=0.001)
for epoch in range(2):
    train_epoch(model, optimizer, train_loader, [])
