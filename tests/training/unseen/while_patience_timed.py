"""A while loop runs until the validation loss has not improved for PATIENCE epochs; a decorator times the training and evaluation functions.

Epochs: 4
Rates: 0.3 0.3 0.3 0.15
Optimizers: SGD
Parameters: 1444
Others: 0
Weights: best
"""
import time
from functools import wraps
from torch.utils.data import Subset

torch.manual_seed(7)
timings = {}


def timed(fn):
    """adds up how long the function took (for the table in my report)"""
    @wraps(fn)
    def wrapper(*args, **kwargs):
        t0 = time.perf_counter()
        out = fn(*args, **kwargs)
        timings.setdefault(fn.__name__, []).append(time.perf_counter() - t0)
        return out
    return wrapper


transform = transforms.Compose([
    transforms.Grayscale(),
    transforms.Resize((8, 8)),
    transforms.ToTensor(),
    transforms.Normalize(mean=[0.5], std=[0.5]),
])
trainset = datasets.ImageFolder("data/train", transform=transform)
testset = datasets.ImageFolder("data/test", transform=transform)

# every 4th training image is for validation
val_idx = list(range(0, len(trainset), 4))
train_idx = [i for i in range(len(trainset)) if i % 4 != 0]
train_loader = DataLoader(Subset(trainset, train_idx), batch_size=4, shuffle=True)
val_loader = DataLoader(Subset(trainset, val_idx), batch_size=4)
test_loader = DataLoader(testset, batch_size=4)


@timed
def train_one_epoch(model, optimizer):
    model.train()
    total = 0
    for images, labels in train_loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        total += loss.item() * len(labels)
    return total / len(train_idx)


@timed
@torch.no_grad()
def validate(model, loader):
    model.eval()
    loss, correct, n = 0, 0, 0
    for images, labels in loader:
        out = model(images)
        loss += F.cross_entropy(out, labels, reduction="sum").item()
        correct += (out.argmax(1) == labels).sum().item()
        n += len(labels)
    return loss / n, correct / n


model = ViT(image_size=8, patch_size=4, num_classes=3, channels=1, dim=12, depth=4, heads=3, mlp_dim=24)
optimizer = optim.SGD(model.parameters(), lr=0.3, momentum=0.8)

MAX_EPOCHS = 6
PATIENCE = 2
MIN_DELTA = 0.02   # smaller improvements do not count

epoch, waited = 0, 0
best_loss = float("inf")
best_state = None
history = {"train_loss": [], "val_loss": [], "val_acc": [], "lr": []}

while waited < PATIENCE and epoch < MAX_EPOCHS:
    epoch += 1
    train_loss = train_one_epoch(model, optimizer)
    val_loss, val_acc = validate(model, val_loader)
    history["train_loss"].append(train_loss)
    history["val_loss"].append(val_loss)
    history["val_acc"].append(val_acc)
    history["lr"].append(optimizer.param_groups[0]["lr"])
    print(f"epoch {epoch}: train {train_loss:.4f} val {val_loss:.4f} acc {val_acc:.2f}")

    if val_loss < best_loss - MIN_DELTA:
        best_loss = val_loss
        best_state = {k: v.clone() for k, v in model.state_dict().items()}
        waited = 0
    else:
        waited += 1
        # no improvement -> smaller steps
        for group in optimizer.param_groups:
            group["lr"] /= 2

print("stopped after", epoch, "epochs")
model.load_state_dict(best_state)
print("test loss / acc:", validate(model, test_loader))
for name, t in timings.items():
    print(f"{name:16s} {len(t)} calls, {sum(t):.3f} s")
torch.save(model.state_dict(), "400101204_Lab8_Homework.pth")
