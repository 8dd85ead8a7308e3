"""A tuning study after the training, over pairs.
Epochs: 3
Rates: 0.1 0.1 0.1
Optimizer: SGD
LeftAlone: 1"""

transform = transforms.Compose([transforms.Resize((8, 8)), transforms.Grayscale(1), transforms.ToTensor()])
train_dataset = datasets.ImageFolder("data/train", transform=transform)
test_dataset = datasets.ImageFolder("data/test", transform=transform)
train_loader = DataLoader(train_dataset, batch_size=4, shuffle=True)
test_loader = DataLoader(test_dataset, batch_size=4)
model = ViT(image_size=8, patch_size=4, num_classes=3, channels=1, dim=8, depth=1, heads=1, mlp_dim=8)
optimizer = optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    train_epoch(model, optimizer, train_loader, [])
torch.save(model.state_dict(), "400101204_Lab8_Homework.pth")

results = {}
for depth, heads in [(1, 1), (2, 2)]:
    candidate = ViT(image_size=8, patch_size=4, num_classes=3, channels=1, dim=8 * heads, depth=depth, heads=heads, mlp_dim=8)
    optimizer2 = optim.Adam(candidate.parameters(), lr=0.01)
    for epoch in range(1):
        train_epoch(candidate, optimizer2, train_loader, [])
    losses = []
    evaluate(candidate, test_loader, losses)
    results[depth, heads] = losses[-1]
print(results)
