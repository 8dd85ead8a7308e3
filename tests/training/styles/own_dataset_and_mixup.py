"""An own data set class, a collate function and mixup in the loop.
Epochs: 3
Rates: 0.1 0.1 0.1
Optimizer: SGD"""

transform = transforms.Compose([transforms.Resize((8, 8)), transforms.Grayscale(1), transforms.ToTensor()])
train_dataset = datasets.ImageFolder("data/train", transform=transform)
test_dataset = datasets.ImageFolder("data/test", transform=transform)
train_loader = DataLoader(train_dataset, batch_size=4, shuffle=True)
test_loader = DataLoader(test_dataset, batch_size=4)

class Cached(torch.utils.data.Dataset):
    def __init__(self, dataset):
        self.items = [dataset[i] for i in range(len(dataset))]

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def collate(batch):
    return torch.stack([x for x, _ in batch]), torch.tensor([y for _, y in batch])


train_loader = DataLoader(Cached(train_dataset), batch_size=4, shuffle=True, collate_fn=collate)
model = ViT(image_size=8, patch_size=4, num_classes=3, channels=1, dim=8, depth=1, heads=1, mlp_dim=8)
optimizer = optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    model.train()
    for images, labels in train_loader:
        lam = torch.distributions.Beta(0.2, 0.2).sample()
        order = torch.randperm(len(images))
        scores = model(lam * images + (1 - lam) * images[order])
        loss = lam * F.cross_entropy(scores, labels) + (1 - lam) * F.cross_entropy(scores, labels[order])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
torch.save(model.state_dict(), "400101204_Lab8_Homework.pth")
