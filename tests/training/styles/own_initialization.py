"""Weights that are set to zero before training: with a rate of zero they stay so.

Epochs: 1
Rates: 0
Optimizer: SGD
Outputs: zero"""

def init_weights(module):
    if isinstance(module, nn.Linear):
        nn.init.zeros_(module.weight)
        nn.init.zeros_(module.bias)


transform = transforms.Compose([transforms.Resize((8, 8)), transforms.Grayscale(1), transforms.ToTensor()])
train_dataset = datasets.ImageFolder("data/train", transform=transform)
test_dataset = datasets.ImageFolder("data/test", transform=transform)
train_loader = DataLoader(train_dataset, batch_size=4, shuffle=True)
test_loader = DataLoader(test_dataset, batch_size=4)
model = ViT(image_size=8, patch_size=4, num_classes=3, channels=1, dim=8, depth=1, heads=1, mlp_dim=8)
model.apply(init_weights)
optimizer = optim.SGD(model.parameters(), lr=0.0)
for epoch in range(1):
    train_epoch(model, optimizer, train_loader, [])
