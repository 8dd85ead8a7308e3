"""The loss in two steps, in an own inner loop.

Epochs: 2
Rates: 0.1 0.1
Optimizer: SGD"""

transform = transforms.Compose([transforms.Resize((8, 8)), transforms.Grayscale(1), transforms.ToTensor()])
train_dataset = datasets.ImageFolder("data/train", transform=transform)
test_dataset = datasets.ImageFolder("data/test", transform=transform)
train_loader = DataLoader(train_dataset, batch_size=4, shuffle=True)
test_loader = DataLoader(test_dataset, batch_size=4)
model = ViT(image_size=8, patch_size=4, num_classes=3, channels=1, dim=8, depth=1, heads=1, mlp_dim=8)
optimizer = optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    for batch, (x, y) in enumerate(train_loader):
        optimizer.zero_grad()
        loss = F.nll_loss(F.log_softmax(model(x), dim=1), y)
        loss.backward()
        optimizer.step()
        if batch % 2 == 0:
            print(f"[{batch * len(x)}/{len(train_loader.dataset)}] {loss.item():.3f}")
