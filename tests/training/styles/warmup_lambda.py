"""A warm-up in a lambda that reads the configuration.

Epochs: 4
Rates: 0.05 0.1 0.1 0.1
Optimizer: AdamW
Schedule: LambdaLR"""

transform = transforms.Compose([transforms.Resize((8, 8)), transforms.Grayscale(1), transforms.ToTensor()])
train_dataset = datasets.ImageFolder("data/train", transform=transform)
test_dataset = datasets.ImageFolder("data/test", transform=transform)
train_loader = DataLoader(train_dataset, batch_size=4, shuffle=True)
test_loader = DataLoader(test_dataset, batch_size=4)
model = ViT(image_size=8, patch_size=4, num_classes=3, channels=1, dim=8, depth=1, heads=1, mlp_dim=8)
cfg = {"epochs": 4, "lr": 0.1, "warmup": 2}
optimizer = optim.AdamW(model.parameters(), lr=cfg["lr"])
sched = optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: min(1.0, (epoch + 1) / cfg["warmup"]))
history = []
for epoch in range(cfg["epochs"]):
    train_epoch(model, optimizer, train_loader, history)
    sched.step()
