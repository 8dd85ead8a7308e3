"""Two names for one model: what is saved under the one was trained further under the other.
Epochs: 5
Planned: 1
Rates: 0.1 0.1 0.01 0.01 0.01
Optimizer: SGD
Optimizers: SGD SGD SGD"""

transform = transforms.Compose([transforms.Resize((8, 8)), transforms.Grayscale(1), transforms.ToTensor()])
train_dataset = datasets.ImageFolder("data/train", transform=transform)
train_loader = DataLoader(train_dataset, batch_size=4, shuffle=True)
net = ViT(image_size=8, patch_size=4, num_classes=3, channels=1, dim=8, depth=1, heads=1, mlp_dim=8)
model = net.to("cpu")
optimizer = optim.SGD(net.parameters(), lr=0.1)
for epoch in range(1):
    train_epoch(net, optimizer, train_loader, [])
for epoch in range(1):
    train_epoch(model, optimizer, train_loader, [])
best_model = model
optimizer = optim.SGD(model.parameters(), lr=0.01)
for epoch in range(3):
    train_epoch(model, optimizer, train_loader, [])
torch.save(best_model.state_dict(), "400101204_Lab8_Homework.pth")
