"""A function makes model and optimizer.
Epochs: 2
Rates: 0.1 0.1
Optimizer: SGD"""

transform = transforms.Compose([transforms.Resize((8, 8)), transforms.Grayscale(1), transforms.ToTensor()])
train_dataset = datasets.ImageFolder("data/train", transform=transform)
test_dataset = datasets.ImageFolder("data/test", transform=transform)
train_loader = DataLoader(train_dataset, batch_size=4, shuffle=True)
test_loader = DataLoader(test_dataset, batch_size=4)

CONFIG = dict(dim=8, depth=1, heads=1, mlp_dim=8, lr=0.1)

def make(config):
    net = ViT(image_size=8, patch_size=4, num_classes=3, channels=1, **{k: v for k, v in config.items() if k != "lr"})
    return net, optim.SGD(net.parameters(), lr=config["lr"])

net, optimizer = make(CONFIG)
for epoch in range(2):
    train_epoch(net, optimizer, train_loader, [])
torch.save(net.state_dict(), "400101204_Lab8_Homework.pth")
