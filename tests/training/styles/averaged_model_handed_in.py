"""The running average of the weights is handed in.
Epochs: 3
Rates: 0.1 0.1 0.1
Optimizer: SGD
Counted: the average"""

transform = transforms.Compose([transforms.Resize((8, 8)), transforms.Grayscale(1), transforms.ToTensor()])
train_dataset = datasets.ImageFolder("data/train", transform=transform)
test_dataset = datasets.ImageFolder("data/test", transform=transform)
train_loader = DataLoader(train_dataset, batch_size=4, shuffle=True)
test_loader = DataLoader(test_dataset, batch_size=4)
model = ViT(image_size=8, patch_size=4, num_classes=3, channels=1, dim=8, depth=1, heads=1, mlp_dim=8)
ema = torch.optim.swa_utils.AveragedModel(model)
optimizer = optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    train_epoch(model, optimizer, train_loader, [])
    ema.update_parameters(model)
torch.save(ema.module.state_dict(), "400101204_Lab8_Homework.pth")
