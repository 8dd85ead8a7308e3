"""Two stages at different rates, and the lowest loss on the test images is only printed.
Epochs: 4
Rates: 0.1 0.1 0.01 0.01
Optimizer: SGD
Planned: 2"""

transform = transforms.Compose([transforms.Resize((8, 8)), transforms.Grayscale(1), transforms.ToTensor()])
train_dataset = datasets.ImageFolder("data/train", transform=transform)
test_dataset = datasets.ImageFolder("data/test", transform=transform)
train_loader = DataLoader(train_dataset, batch_size=4, shuffle=True)
test_loader = DataLoader(test_dataset, batch_size=4)
model = ViT(image_size=8, patch_size=4, num_classes=3, channels=1, dim=8, depth=1, heads=1, mlp_dim=8)
losses, test_losses = [], []
optimizer = optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    train_epoch(model, optimizer, train_loader, losses)
    evaluate(model, test_loader, test_losses)
optimizer = optim.SGD(model.parameters(), lr=0.01)
for epoch in range(2):
    train_epoch(model, optimizer, train_loader, losses)
    evaluate(model, test_loader, test_losses)
    print(f"best so far {min(test_losses):.3f}")
torch.save(model.state_dict(), "400101204_Lab8_Homework.pth")
