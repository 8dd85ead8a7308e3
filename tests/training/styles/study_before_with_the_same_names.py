"""A study before the training that uses the same names and fills the same list.
Epochs: 2
Rates: 0.1 0.1
Optimizer: SGD
LeftAlone: 1"""

transform = transforms.Compose([transforms.Resize((8, 8)), transforms.Grayscale(1), transforms.ToTensor()])
train_dataset = datasets.ImageFolder("data/train", transform=transform)
test_dataset = datasets.ImageFolder("data/test", transform=transform)
train_loader = DataLoader(train_dataset, batch_size=4, shuffle=True)
test_loader = DataLoader(test_dataset, batch_size=4)

losses = []
for lr in [1e-3, 1e-2]:
    model = ViT(image_size=8, patch_size=4, num_classes=3, channels=1, dim=16, depth=2, heads=1, mlp_dim=8)
    optimizer = optim.AdamW(model.parameters(), lr=lr)
    for epoch in range(1):
        train_epoch(model, optimizer, train_loader, losses)
model = ViT(image_size=8, patch_size=4, num_classes=3, channels=1, dim=8, depth=1, heads=1, mlp_dim=8)
optimizer = optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    train_epoch(model, optimizer, train_loader, losses)
torch.save(model.state_dict(), "400101204_Lab8_Homework.pth")
