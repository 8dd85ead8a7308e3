"""A schedule that the loop steps after each epoch.

Epochs: 4
Rates: 0.1 0.085355 0.05 0.014645
Optimizer: AdamW
Schedule: CosineAnnealingLR"""

transform = transforms.Compose([transforms.Resize((8, 8)), transforms.Grayscale(1), transforms.ToTensor()])
train_dataset = datasets.ImageFolder("data/train", transform=transform)
test_dataset = datasets.ImageFolder("data/test", transform=transform)
train_loader = DataLoader(train_dataset, batch_size=4, shuffle=True)
test_loader = DataLoader(test_dataset, batch_size=4)
model = ViT(image_size=8, patch_size=4, num_classes=3, channels=1, dim=8, depth=1, heads=1, mlp_dim=8)
EPOCHS = 4
optimizer = torch.optim.AdamW(model.parameters(), lr=0.1, weight_decay=0.05)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=EPOCHS)
losses, test_losses = [], []
for epoch in range(EPOCHS):
    train_epoch(model, optimizer, train_loader, losses)
    evaluate(model, test_loader, test_losses)
    scheduler.step()
