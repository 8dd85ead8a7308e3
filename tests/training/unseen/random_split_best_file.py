"""The training data are split again by random_split, the best checkpoint on the validation part goes to a file and is loaded at the end.

Epochs: 6
Rates: 0.02 0.02 0.01 0.005 0.0025 0.00125
Optimizers: Adam
Parameters: 764
Others: 0
Weights: best
"""
import os
import random
import numpy as np
from torch.utils.data import random_split

SEED = 42
random.seed(SEED)
np.random.seed(SEED)
torch.manual_seed(SEED)

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
transform = transforms.Compose([transforms.Grayscale(), transforms.Resize((8, 8)), transforms.ToTensor(),
                                transforms.Normalize((0.5,), (0.5,))])
full_train = datasets.ImageFolder("data/train", transform=transform)
test_set = datasets.ImageFolder("data/test", transform=transform)

# 20 % of the training images for validation, the test images stay untouched
n_val = int(0.2 * len(full_train))
train_set, val_set = random_split(full_train, [len(full_train) - n_val, n_val],
                                  generator=torch.Generator().manual_seed(SEED))
train_loader = DataLoader(train_set, batch_size=4, shuffle=True)
val_loader = DataLoader(val_set, batch_size=4)
test_loader = DataLoader(test_set, batch_size=4)
print(len(train_set), len(val_set), len(test_set))


def accuracy(model, loader):
    model.eval()
    right = 0
    with torch.no_grad():
        for images, labels in loader:
            images, labels = images.to(device), labels.to(device)
            right += (model(images).argmax(1) == labels).sum().item()
    return 100 * right / len(loader.dataset)


model = ViT(image_size=8, patch_size=4, num_classes=3, channels=1, dim=8, depth=3, heads=2, mlp_dim=16).to(device)
optimizer = optim.Adam(model.parameters(), lr=0.02)
scheduler = optim.lr_scheduler.ReduceLROnPlateau(optimizer, mode="max", factor=0.5, patience=0)
criterion = nn.CrossEntropyLoss(label_smoothing=0.1)

os.makedirs("checkpoints", exist_ok=True)
BEST = os.path.join("checkpoints", "best_model.pth")
best_acc = 0.0
N_EPOCHS = 6
for epoch in range(1, N_EPOCHS + 1):
    model.train()
    running = 0.0
    for images, labels in train_loader:
        images, labels = images.to(device), labels.to(device)
        optimizer.zero_grad()
        loss = criterion(model(images), labels)
        loss.backward()
        optimizer.step()
        running += loss.item() * images.size(0)
    val_acc = accuracy(model, val_loader)
    scheduler.step(val_acc)
    print(f"Epoch {epoch}/{N_EPOCHS}: loss {running / len(train_set):.4f}, val acc {val_acc:.1f} %")
    if val_acc > best_acc:
        best_acc = val_acc
        torch.save(model.state_dict(), BEST)
        print("   saved", BEST)

model.load_state_dict(torch.load(BEST, map_location=device))
print(f"best val acc {best_acc:.1f} %, test acc {accuracy(model, test_loader):.1f} %")
torch.save(model.state_dict(), "400101204_Lab8_Homework.pth")
