"""An exponential moving average of the weights, kept by hand in a dictionary, is what is saved.
Epochs: 3
Rates: 0.1 0.1 0.1
Optimizer: SGD
Counted: averaged"""

transform = transforms.Compose([transforms.Resize((8, 8)), transforms.Grayscale(1), transforms.ToTensor()])
train_dataset = datasets.ImageFolder("data/train", transform=transform)
test_dataset = datasets.ImageFolder("data/test", transform=transform)
train_loader = DataLoader(train_dataset, batch_size=4, shuffle=True)
test_loader = DataLoader(test_dataset, batch_size=4)

model = ViT(image_size=8, patch_size=4, num_classes=3, channels=1, dim=8, depth=1, heads=1, mlp_dim=8)
optimizer = optim.SGD(model.parameters(), lr=0.1)
ema = {k: v.clone() for k, v in model.state_dict().items()}
for epoch in range(3):
    model.train()
    for x, y in train_loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        with torch.no_grad():
            for k, v in model.state_dict().items():
                ema[k].mul_(0.9).add_(v, alpha=0.1)
model.load_state_dict(ema)
evaluate(model, test_loader, [])
torch.save(model.state_dict(), "400101204_Lab8_Homework.pth")
