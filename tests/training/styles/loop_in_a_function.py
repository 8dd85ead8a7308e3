"""A function that trains, with what it needs as parameters, and returns early.

Epochs: 3
Planned: 9
Rates: 0.1 0.1 0.1
Optimizer: SGD
Validates: yes"""

def fit(model, train_loader, val_loader, optimizer, epochs, patience=3):
    history = {"train": [], "val": []}
    waited = 0
    for epoch in range(epochs):
        train_epoch(model, optimizer, train_loader, history["train"])
        evaluate(model, val_loader, history["val"])
        waited += 1 if history["val"][-1] > 0 else 0
        if waited >= patience:
            return model, history
    return model, history


transform = transforms.Compose([transforms.Resize((8, 8)), transforms.Grayscale(1), transforms.ToTensor()])
train_dataset = datasets.ImageFolder("data/train", transform=transform)
test_dataset = datasets.ImageFolder("data/test", transform=transform)
train_loader = DataLoader(train_dataset, batch_size=4, shuffle=True)
test_loader = DataLoader(test_dataset, batch_size=4)
model = ViT(image_size=8, patch_size=4, num_classes=3, channels=1, dim=8, depth=1, heads=1, mlp_dim=8)
optimizer = optim.SGD(model.parameters(), lr=0.1)
model, history = fit(model, train_loader, test_loader, optimizer, epochs=9)
