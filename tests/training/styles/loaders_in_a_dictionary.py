"""Loaders in a dictionary that a loop fills.
Epochs: 2
Rates: 0.1 0.1
Optimizer: SGD"""

transform = transforms.Compose([transforms.Resize((8, 8)), transforms.Grayscale(1), transforms.ToTensor()])

sets = {}
loaders = {}
for split in ("train", "val"):
    sets[split] = datasets.ImageFolder("data/" + split, transform=transform)
    loaders[split] = DataLoader(sets[split], batch_size=4, shuffle=split == "train")
model = ViT(image_size=8, patch_size=4, num_classes=3, channels=1, dim=8, depth=1, heads=1, mlp_dim=8)
optimizer = optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    train_epoch(model, optimizer, loaders["train"], [])
    evaluate(model, loaders["val"], [])
torch.save(model.state_dict(), "400101204_Lab8_Homework.pth")
