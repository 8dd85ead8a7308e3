"""One transform with a flip, used for both data sets.

Epochs: 2
Rates: 0.1 0.1
Optimizer: SGD"""

tf = transforms.Compose(
    [transforms.Resize((8, 8)), transforms.Grayscale(1), transforms.RandomHorizontalFlip(), transforms.ToTensor()]
)
full = datasets.ImageFolder("data", transform=tf)
train_set, test_set = torch.utils.data.random_split(full, [30, 6])
train_loader = DataLoader(train_set, batch_size=4, shuffle=True)
test_loader = DataLoader(test_set, batch_size=4)
model = ViT(image_size=8, patch_size=4, num_classes=3, channels=1, dim=8, depth=1, heads=1, mlp_dim=8)
optimizer = optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    train_epoch(model, optimizer, train_loader, [])
    evaluate(model, test_loader, [])
