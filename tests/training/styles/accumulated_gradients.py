"""Gradients of several batches are added up, clipped, and stepped with a warm-up per step.
Epochs: 3
Rates: 0.06 0.1 0.1
Optimizer: AdamW
Schedule: LambdaLR"""

transform = transforms.Compose([transforms.Resize((8, 8)), transforms.Grayscale(1), transforms.ToTensor()])
train_dataset = datasets.ImageFolder("data/train", transform=transform)
test_dataset = datasets.ImageFolder("data/test", transform=transform)
train_loader = DataLoader(train_dataset, batch_size=4, shuffle=True)
test_loader = DataLoader(test_dataset, batch_size=4)

model = ViT(image_size=8, patch_size=4, num_classes=3, channels=1, dim=8, depth=1, heads=1, mlp_dim=8)
optimizer = optim.AdamW(model.parameters(), lr=0.1)
warmup = optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 5))
ACCUMULATE = 3
for epoch in range(3):
    model.train()
    optimizer.zero_grad()
    for i, (images, labels) in enumerate(train_loader):
        loss = F.cross_entropy(model(images), labels) / ACCUMULATE
        loss.backward()
        if (i + 1) % ACCUMULATE == 0:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            warmup.step()
            optimizer.zero_grad()
torch.save(model.state_dict(), "400101204_Lab8_Homework.pth")
