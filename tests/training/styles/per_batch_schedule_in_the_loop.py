"""A schedule that is stepped for every batch, by a loop that does without train_epoch.

Epochs: 2
Rates: 0.031765 0
Optimizer: SGD
Schedule: LambdaLR"""

transform = transforms.Compose([transforms.Resize((8, 8)), transforms.Grayscale(1), transforms.ToTensor()])
train_dataset = datasets.ImageFolder("data/train", transform=transform)
test_dataset = datasets.ImageFolder("data/test", transform=transform)
train_loader = DataLoader(train_dataset, batch_size=4, shuffle=True)
test_loader = DataLoader(test_dataset, batch_size=4)
model = ViT(image_size=8, patch_size=4, num_classes=3, channels=1, dim=8, depth=1, heads=1, mlp_dim=8)
criterion = nn.CrossEntropyLoss()
optimizer = optim.SGD(model.parameters(), lr=0.06)
n_epochs = 2
total = n_epochs * len(train_loader)
scheduler = optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / (total - 1))
for epoch in range(n_epochs):
    model.train()
    for images, labels in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(images), labels)
        loss.backward()
        optimizer.step()
        scheduler.step()
