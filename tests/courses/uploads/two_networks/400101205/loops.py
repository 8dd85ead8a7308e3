import torch
from torch import optim
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader
from torchvision import transforms
from torchvision.datasets import ImageFolder

device = "cuda" if torch.cuda.is_available() else "cpu"
transform = transforms.Compose([transforms.ToTensor(), transforms.Normalize((0.5,) * 3, (0.25,) * 3)])
train_loader = DataLoader(ImageFolder("data/train", transform), batch_size=32, shuffle=True)


def train_epoch(model, optimizer, loader):
    model.train()
    for images, labels in loader:
        loss = cross_entropy(model(images.to(device)), labels.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def evaluate(model, loader):
    model.eval()
    with torch.no_grad():
        hits = [(model(x.to(device)).argmax(1).cpu() == y).float().mean().item() for x, y in loader]
    return sum(hits) / len(hits)


def fit(model, epochs, rate):
    optimizer = optim.AdamW(model.parameters(), lr=rate)
    for _ in range(epochs):
        train_epoch(model, optimizer, train_loader)
    return model
