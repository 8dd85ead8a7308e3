"""One function for the study and for the model that is handed in.
Epochs: 3
Rates: 0.1 0.1 0.1
Optimizer: SGD
LeftAlone: 1"""

transform = transforms.Compose([transforms.Resize((8, 8)), transforms.Grayscale(1), transforms.ToTensor()])
train_dataset = datasets.ImageFolder("data/train", transform=transform)
test_dataset = datasets.ImageFolder("data/test", transform=transform)
train_loader = DataLoader(train_dataset, batch_size=4, shuffle=True)
test_loader = DataLoader(test_dataset, batch_size=4)

def fit(model, optimizer, epochs, scheduler=None, verbose=False):
    history = []
    for epoch in range(epochs):
        train_epoch(model, optimizer, train_loader, history)
        if scheduler is not None:
            scheduler.step()
        if verbose:
            print("epoch", epoch, history[-1])
    return history

model = ViT(image_size=8, patch_size=4, num_classes=3, channels=1, dim=8, depth=1, heads=1, mlp_dim=8)
optimizer = optim.SGD(model.parameters(), lr=0.1)
history = fit(model, optimizer, 3, verbose=True)
torch.save(model.state_dict(), "400101204_Lab8_Homework.pth")

for depth in (1, 2):
    other = ViT(image_size=8, patch_size=4, num_classes=3, channels=1, dim=8, depth=depth, heads=1, mlp_dim=8)
    fit(other, optim.Adam(other.parameters(), lr=0.01), 1)
