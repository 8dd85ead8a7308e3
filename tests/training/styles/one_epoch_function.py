"""A function that trains and evaluates for one epoch.

Epochs: 2
Rates: 0.1 0.05
Optimizer: SGD
Schedule: StepLR"""

def run_epoch(epoch):
    train_epoch(model, optimizer, train_loader, train_history)
    evaluate(model, test_loader, test_history)
    scheduler.step()
    return train_history[-1]


transform = transforms.Compose([transforms.Resize((8, 8)), transforms.Grayscale(1), transforms.ToTensor()])
train_dataset = datasets.ImageFolder("data/train", transform=transform)
test_dataset = datasets.ImageFolder("data/test", transform=transform)
train_loader = DataLoader(train_dataset, batch_size=4, shuffle=True)
test_loader = DataLoader(test_dataset, batch_size=4)
model = ViT(image_size=8, patch_size=4, num_classes=3, channels=1, dim=8, depth=1, heads=1, mlp_dim=8)
optimizer = optim.SGD(model.parameters(), lr=0.1)
scheduler = optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
train_history, test_history = [], []
for epoch in range(2):
    loss = run_epoch(epoch)
    print(epoch, loss)
