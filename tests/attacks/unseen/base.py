# %%
import math
import random
import shutil
import time
import zipfile
from pathlib import Path

import matplotlib.pyplot as plt
import seaborn as sns
import torch
import torch.nn.functional as F
from sklearn.metrics import confusion_matrix
from torch import nn, optim
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

STUDENT_ID = "400109000"
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

# %%
transform = transforms.Compose(
    [
        transforms.Resize((28, 28)),
        transforms.Grayscale(num_output_channels=1),
        transforms.ToTensor(),
        transforms.Normalize((0.5,), (0.5,)),
    ]
)
BATCH_SIZE = 32

train_set = datasets.ImageFolder("data/train", transform=transform)
test_set = datasets.ImageFolder("data/test", transform=transform)
train_loader = DataLoader(train_set, batch_size=BATCH_SIZE, shuffle=True)
test_loader = DataLoader(test_set, batch_size=BATCH_SIZE, shuffle=False)
class_names = train_set.classes


# %%
class PreNorm(nn.Module):
    def __init__(self, dim, fn):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.fn = fn

    def forward(self, x, **kwargs):
        return self.fn(self.norm(x), **kwargs)


# %%
class FeedForward(nn.Module):
    def __init__(self, dim, hidden_dim, dropout=0.0):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(dim, hidden_dim),
            nn.GELU(),
            nn.Dropout(dropout),
            nn.Linear(hidden_dim, dim),
            nn.Dropout(dropout),
        )

    def forward(self, x):
        return self.net(x)


# %%
class Attention(nn.Module):
    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__()
        inner_dim = heads * dim_head
        self.heads = heads
        self.dim_head = dim_head
        self.to_qkv = nn.Linear(dim, 3 * inner_dim, bias=False)
        self.to_out = nn.Linear(inner_dim, dim)
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        batch, tokens, _ = x.shape
        q, k, v = (
            part.view(batch, tokens, self.heads, self.dim_head).transpose(1, 2)
            for part in self.to_qkv(x).chunk(3, dim=-1)
        )
        weights = (q @ k.transpose(-2, -1) * self.dim_head**-0.5).softmax(dim=-1)
        joined = (weights @ v).transpose(1, 2).reshape(batch, tokens, -1)
        return self.drop(self.to_out(joined))


# %%
class Transformer(nn.Module):
    def __init__(self, dim, depth, heads, dim_head, mlp_dim, dropout=0.0):
        super().__init__()
        self.blocks = nn.ModuleList()
        for _ in range(depth):
            attention = PreNorm(dim, Attention(dim, heads=heads, dim_head=dim_head, dropout=dropout))
            feed_forward = PreNorm(dim, FeedForward(dim, mlp_dim, dropout=dropout))
            self.blocks.append(nn.ModuleList([attention, feed_forward]))

    def forward(self, x):
        for attention, feed_forward in self.blocks:
            x = x + attention(x)
            x = x + feed_forward(x)
        return x


# %%
class ViT(nn.Module):
    def __init__(
        self,
        *,
        image_size,
        patch_size,
        num_classes,
        dim,
        depth,
        heads,
        mlp_dim,
        pool="cls",
        channels=1,
        dim_head=64,
        dropout=0.0,
        emb_dropout=0.0,
    ):
        super().__init__()
        if image_size % patch_size != 0:
            raise ValueError(f"An image of {image_size} pixels cannot be cut into patches of {patch_size}.")
        self.pool = pool
        self.patch_projection = nn.Conv2d(channels, dim, kernel_size=patch_size, stride=patch_size)
        self.class_token = nn.Parameter(0.02 * torch.randn(1, 1, dim))
        self.positions = nn.Parameter(0.02 * torch.randn(1, (image_size // patch_size) ** 2 + 1, dim))
        self.dropout = nn.Dropout(emb_dropout)
        self.transformer = Transformer(dim, depth, heads, dim_head, mlp_dim, dropout)
        self.head = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, num_classes))

    def forward(self, img):
        tokens = self.patch_projection(img).flatten(2).transpose(1, 2)
        class_tokens = self.class_token.expand(len(img), -1, -1)
        tokens = torch.cat([class_tokens, tokens], dim=1) + self.positions
        encoded = self.transformer(self.dropout(tokens))
        pooled = encoded[:, 0] if self.pool == "cls" else encoded.mean(dim=1)
        return self.head(pooled)


# %%
def train_epoch(model, optimizer, data_loader, loss_history):
    model.train()
    total = len(data_loader.dataset)
    for index, (images, labels) in enumerate(data_loader):
        images, labels = images.to(device), labels.to(device)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        if index % 100 == 0:
            print(f"[{index * len(images):5d}/{total}] loss {loss.item():.4f}")
            loss_history.append(loss.item())


# %%
def evaluate(model, data_loader, loss_history):
    model.eval()
    total_loss, correct, count = 0.0, 0, 0
    with torch.no_grad():
        for images, labels in data_loader:
            images, labels = images.to(device), labels.to(device)
            scores = model(images)
            total_loss += F.cross_entropy(scores, labels, reduction="sum").item()
            correct += (scores.argmax(dim=1) == labels).sum().item()
            count += len(labels)
    average_loss = total_loss / count
    loss_history.append(average_loss)
    print(f"test loss {average_loss:.4f}, accuracy {correct}/{count} ({100 * correct / count:.2f} %)")


# %%
N_EPOCHS = 1
model = ViT(
    image_size=28, patch_size=4, num_classes=6, channels=1, dim=32, depth=2, heads=2, dim_head=16, mlp_dim=64
)
model.to(device)
optimizer = optim.AdamW(model.parameters(), lr=1e-3)

# %%
train_loss_history, test_loss_history = [], []
for epoch in range(N_EPOCHS):
    print(f"Epoch {epoch + 1}/{N_EPOCHS}")
    train_epoch(model, optimizer, train_loader, train_loss_history)
    evaluate(model, test_loader, test_loss_history)

# %%
torch.save(model.state_dict(), f"{STUDENT_ID}_Lab8_Homework.pth")


# %%
def predictions(model, data_loader):
    model.eval()
    images, labels, predicted = [], [], []
    with torch.no_grad():
        for batch, targets in data_loader:
            images.append(batch.cpu())
            labels.append(targets.cpu())
            predicted.append(model(batch.to(device)).argmax(dim=1).cpu())
    return torch.cat(images), torch.cat(labels), torch.cat(predicted)


def plot_confusion_matrix(model, data_loader, class_names):
    _, labels, predicted = predictions(model, data_loader)
    counts = confusion_matrix(labels.tolist(), predicted.tolist(), labels=list(range(len(class_names))))
    _, ax = plt.subplots(figsize=(8, 7))
    sns.heatmap(counts, annot=True, fmt="d", ax=ax, xticklabels=class_names, yticklabels=class_names)
    ax.set_xlabel("Predicted class")
    ax.set_ylabel("True class")
    ax.set_title("Confusion matrix")
    plt.show()


# %%
def plot_classwise_predictions(model, data_loader, class_names, samples_per_class=4):
    images, labels, predicted = predictions(model, data_loader)
    rows = len(class_names)
    figure, axes = plt.subplots(rows, samples_per_class, figsize=(2.6 * samples_per_class, 2.5 * rows), squeeze=False)
    for label, row in enumerate(axes):
        chosen = (labels == label).nonzero().flatten().tolist()[:samples_per_class]
        for ax in row:
            ax.axis("off")
        for ax, index in zip(row, chosen):
            ax.imshow(images[index, 0] * 0.5 + 0.5, cmap="gray", vmin=0, vmax=1)
            ax.set_title(f"True: {class_names[label]}\nPredicted: {class_names[predicted[index]]}", fontsize=8)
    figure.tight_layout()
    plt.show()


# %%
plot_confusion_matrix(model, test_loader, class_names)
plot_classwise_predictions(model, test_loader, class_names)
