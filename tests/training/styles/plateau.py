"""A schedule that waits for the validation loss.

Epochs: 4
Rates: 0.1 0.1 0.01 0.001
Optimizer: SGD
Schedule: ReduceLROnPlateau
Validates: yes"""

transform = transforms.Compose([transforms.Resize((8, 8)), transforms.Grayscale(1), transforms.ToTensor()])
train_dataset = datasets.ImageFolder("data/train", transform=transform)
test_dataset = datasets.ImageFolder("data/test", transform=transform)
train_loader = DataLoader(train_dataset, batch_size=4, shuffle=True)
test_loader = DataLoader(test_dataset, batch_size=4)
model = ViT(image_size=8, patch_size=4, num_classes=3, channels=1, dim=8, depth=1, heads=1, mlp_dim=8)
optimizer = optim.SGD(model.parameters(), lr=0.1)
scheduler = optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.1, patience=0)
val_losses = []
for epoch in range(4):
    train_epoch(model, optimizer, train_loader, [])
    evaluate(model, test_loader, val_losses)
    scheduler.step(1.0 + 0 * val_losses[-1])
