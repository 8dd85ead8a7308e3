"""Two schedules, one after the other.

Epochs: 4
Rates: 0.05 0.1 0.01 0.01
Optimizer: SGD
Schedule: SequentialLR"""

transform = transforms.Compose([transforms.Resize((8, 8)), transforms.Grayscale(1), transforms.ToTensor()])
train_dataset = datasets.ImageFolder("data/train", transform=transform)
test_dataset = datasets.ImageFolder("data/test", transform=transform)
train_loader = DataLoader(train_dataset, batch_size=4, shuffle=True)
test_loader = DataLoader(test_dataset, batch_size=4)
model = ViT(image_size=8, patch_size=4, num_classes=3, channels=1, dim=8, depth=1, heads=1, mlp_dim=8)
optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
warmup = optim.lr_scheduler.ConstantLR(optimizer, factor=0.5, total_iters=1)
decay = optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.1)
scheduler = optim.lr_scheduler.SequentialLR(optimizer, [warmup, decay], milestones=[1])
h = []
for epoch in range(4):
    train_epoch(model, optimizer, train_loader, h)
    if epoch < 2:
        scheduler.step()
