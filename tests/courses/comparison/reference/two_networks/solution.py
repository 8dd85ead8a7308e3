# %% [markdown]
# # A perceptron compared with a convolutional network

# %%
import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.utils.data import DataLoader
from torchvision import transforms
from torchvision.datasets import ImageFolder

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
STUDENT_ID = "YOUR_STUDENT_ID"


# %%
class Perceptron(nn.Module):
    def __init__(self, side, channels, num_classes, hidden):
        # >>> TODO Perceptron.__init__: the layers
        super().__init__()
        self.layers = nn.Sequential(
            nn.Flatten(), nn.Linear(channels * side * side, hidden), nn.ReLU(), nn.Linear(hidden, num_classes)
        )
        # <<<

    def forward(self, x):
        # >>> TODO Perceptron.forward: scores from images
        return self.layers(x)
        # <<<


class ConvNet(nn.Module):
    def __init__(self, channels, num_classes, width):
        # >>> TODO ConvNet.__init__: the layers
        super().__init__()
        self.features = nn.Sequential(
            *(nn.Conv2d(channels, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Conv2d(width, 2 * width, 3, padding=1), nn.BatchNorm2d(2 * width), nn.ReLU()),
        )
        self.head = nn.Linear(2 * width, num_classes)
        # <<<

    def forward(self, x):
        # >>> TODO ConvNet.forward: scores from images
        return self.head(self.features(x).amax(dim=(2, 3)))
        # <<<


# %%
def train_epoch(model, optimizer, loader):
    # >>> TODO train_epoch: one pass over the loader
    model.train()
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        optimizer.zero_grad()
        F.cross_entropy(model(images), labels).backward()
        optimizer.step()
    # <<<


def evaluate(model, loader):
    # >>> TODO evaluate: the share that is right
    model.eval()
    right = 0
    with torch.no_grad():
        for images, labels in loader:
            right += int((model(images.to(device)).argmax(dim=1).cpu() == labels).sum())
    return right / len(loader.dataset)
    # <<<


# %%
transform = transforms.Compose([transforms.ToTensor(), transforms.Normalize((0.5,) * 3, (0.25,) * 3)])
train_loader = DataLoader(ImageFolder("data/train", transform), batch_size=32, shuffle=True)
test_loader = DataLoader(ImageFolder("data/test", transform), batch_size=100)

perceptron = Perceptron(side=16, channels=3, num_classes=4, hidden=64).to(device)
optimizer = optim.AdamW(perceptron.parameters(), lr=2e-3)
for epoch in range(6):
    train_epoch(perceptron, optimizer, train_loader)
    print("perceptron", epoch + 1, evaluate(perceptron, test_loader))
torch.save(perceptron.state_dict(), f"{STUDENT_ID}_Compared_perceptron.pth")

# %%
convnet = ConvNet(channels=3, num_classes=4, width=16).to(device)
optimizer = optim.AdamW(convnet.parameters(), lr=5e-3)
for epoch in range(8):
    train_epoch(convnet, optimizer, train_loader)
    print("convnet", epoch + 1, evaluate(convnet, test_loader))
torch.save(convnet.state_dict(), f"{STUDENT_ID}_Compared_convnet.pth")
