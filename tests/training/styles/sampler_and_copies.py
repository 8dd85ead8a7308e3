"""Augmented copies are put behind the data by ConcatDataset, and a weighted sampler draws from them.
Epochs: 2
Rates: 0.1 0.1
Optimizer: SGD"""

transform = transforms.Compose([transforms.Resize((8, 8)), transforms.Grayscale(1), transforms.ToTensor()])
train_dataset = datasets.ImageFolder("data/train", transform=transform)
test_dataset = datasets.ImageFolder("data/test", transform=transform)
train_loader = DataLoader(train_dataset, batch_size=4, shuffle=True)
test_loader = DataLoader(test_dataset, batch_size=4)

from torch.utils.data import ConcatDataset, WeightedRandomSampler

flipped = datasets.ImageFolder("data/train", transform=transforms.Compose([transforms.RandomHorizontalFlip(1.0), transform]))
both = ConcatDataset([train_dataset, flipped])
weights = [1.0] * len(train_dataset) + [0.5] * len(flipped)
sampler = WeightedRandomSampler(weights, num_samples=len(train_dataset))
train_loader = DataLoader(both, batch_size=4, sampler=sampler)
model = ViT(image_size=8, patch_size=4, num_classes=3, channels=1, dim=8, depth=1, heads=1, mlp_dim=8)
optimizer = optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    train_epoch(model, optimizer, train_loader, [])
torch.save(model.state_dict(), "400101204_Lab8_Homework.pth")
