"""Stops when the validation loss has not improved.

Epochs: 2
Planned: 50
Rates: 0 0
Optimizer: SGD
Validates: yes"""

transform = transforms.Compose([transforms.Resize((8, 8)), transforms.Grayscale(1), transforms.ToTensor()])
train_dataset = datasets.ImageFolder("data/train", transform=transform)
test_dataset = datasets.ImageFolder("data/test", transform=transform)
train_loader = DataLoader(train_dataset, batch_size=4, shuffle=True)
test_loader = DataLoader(test_dataset, batch_size=4)
model = ViT(image_size=8, patch_size=4, num_classes=3, channels=1, dim=8, depth=1, heads=1, mlp_dim=8)
optimizer = optim.SGD(model.parameters(), lr=0.0)
best, patience, bad = float("-inf"), 2, 0
train_losses, val_losses = [], []
for epoch in range(50):
    train_epoch(model, optimizer, train_loader, train_losses)
    evaluate(model, test_loader, val_losses)
    if val_losses[-1] < best - 1e-4:
        best, bad = val_losses[-1], 0
    else:
        bad += 1
        if bad >= patience:
            print("early stop")
            break
