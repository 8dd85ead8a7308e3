"""Two optimizers step in each batch: one for the body, one for the head.
Epochs: 3
Rates: 0.05 0.05 0.05
Optimizer: SGD"""

transform = transforms.Compose([transforms.Resize((8, 8)), transforms.Grayscale(1), transforms.ToTensor()])
train_dataset = datasets.ImageFolder("data/train", transform=transform)
test_dataset = datasets.ImageFolder("data/test", transform=transform)
train_loader = DataLoader(train_dataset, batch_size=4, shuffle=True)
test_loader = DataLoader(test_dataset, batch_size=4)

model = ViT(image_size=8, patch_size=4, num_classes=3, channels=1, dim=8, depth=1, heads=1, mlp_dim=8)
body_opt = optim.SGD([p for n, p in model.named_parameters() if not n.startswith("head")], lr=0.02)
head_opt = optim.SGD(model.head.parameters(), lr=0.05)
for epoch in range(3):
    model.train()
    for images, labels in train_loader:
        loss = F.cross_entropy(model(images), labels)
        body_opt.zero_grad(); head_opt.zero_grad()
        loss.backward()
        body_opt.step(); head_opt.step()
torch.save(model.state_dict(), "400101204_Lab8_Homework.pth")
