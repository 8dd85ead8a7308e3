"""Adam first, then LBFGS with a closure over the same batches.
Epochs: 3
Planned: 2
Rates: 0.01 0.01 0.5
Optimizer: Adam
Optimizers: Adam LBFGS"""

transform = transforms.Compose([transforms.Resize((8, 8)), transforms.Grayscale(1), transforms.ToTensor()])
train_dataset = datasets.ImageFolder("data/train", transform=transform)
test_dataset = datasets.ImageFolder("data/test", transform=transform)
train_loader = DataLoader(train_dataset, batch_size=4, shuffle=True)
test_loader = DataLoader(test_dataset, batch_size=4)

model = ViT(image_size=8, patch_size=4, num_classes=3, channels=1, dim=8, depth=1, heads=1, mlp_dim=8)
optimizer = optim.Adam(model.parameters(), lr=0.01)
for epoch in range(2):
    train_epoch(model, optimizer, train_loader, [])

lbfgs = optim.LBFGS(model.parameters(), lr=0.5, max_iter=2)
for epoch in range(1):
    for images, labels in train_loader:
        def closure():
            lbfgs.zero_grad()
            loss = F.cross_entropy(model(images), labels)
            loss.backward()
            return loss
        lbfgs.step(closure)
torch.save(model.state_dict(), "400101204_Lab8_Homework.pth")
