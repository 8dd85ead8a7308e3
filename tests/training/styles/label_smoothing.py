"""An own inner loop with label smoothing and clipped gradients.

Epochs: 2
Rates: 0.1 0.1
Optimizer: AdamW"""

transform = transforms.Compose([transforms.Resize((8, 8)), transforms.Grayscale(1), transforms.ToTensor()])
train_dataset = datasets.ImageFolder("data/train", transform=transform)
test_dataset = datasets.ImageFolder("data/test", transform=transform)
train_loader = DataLoader(train_dataset, batch_size=4, shuffle=True)
test_loader = DataLoader(test_dataset, batch_size=4)
model = ViT(image_size=8, patch_size=4, num_classes=3, channels=1, dim=8, depth=1, heads=1, mlp_dim=8)
criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
optimizer = optim.AdamW(model.parameters(), lr=0.1)
device = "cuda"
for epoch in range(2):
    running = 0.0
    for x, y in train_loader:
        x, y = x.to(device), y.to(device)
        optimizer.zero_grad(set_to_none=True)
        loss = criterion(model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        running += loss.item() * len(x)
    print(running / len(train_loader.dataset))
