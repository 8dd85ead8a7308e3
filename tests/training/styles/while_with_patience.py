"""A count and patience, both in the condition.
Epochs: 2
Planned: 4
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
epoch, bad, patience, best = 0, 0, 2, float("-inf")
while epoch < 4 and bad < patience:
    train_epoch(model, optimizer, train_loader, [])
    losses = []
    evaluate(model, test_loader, losses)
    if losses[-1] < best:
        best, bad = losses[-1], 0
    else:
        bad += 1
    epoch += 1
torch.save(model.state_dict(), "400101204_Lab8_Homework.pth")
