"""Sixteen pixels instead of eight, in patches of eight.

Epochs: 2
Rates: 0.01 0.01
Optimizer: SGD
Pixels: 1 16 16"""

SIZE = 16
transform = transforms.Compose(
    [transforms.Grayscale(), transforms.Resize((SIZE, SIZE)), transforms.ToTensor(), transforms.Normalize(0.5, 0.5)]
)
train_data = datasets.ImageFolder("NEU/train", transform)
test_data = datasets.ImageFolder("NEU/test", transform)
train_dl = DataLoader(train_data, 4, shuffle=True)
test_dl = DataLoader(test_data, 4)
net = ViT(image_size=SIZE, patch_size=8, num_classes=len(train_data.classes), channels=1, dim=8, depth=1, heads=1, mlp_dim=8)
opt = optim.SGD(net.parameters(), lr=1e-2)
for e in range(2):
    train_epoch(net, opt, train_dl, [])
    evaluate(net, test_dl, [])
