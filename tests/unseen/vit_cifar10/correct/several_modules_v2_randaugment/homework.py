# Assignment 2. The networks are in layers.py, the measures in scores.py, the figures in pictures.py;
# data, training, comparison and study are here.

# %%
import csv
import math
import time
import zipfile

import torch
from layers import (
    BasicBlock,
    EncoderBlock,
    MultiHeadSelfAttention,
    PatchEmbedding,
    ResNet18,
    VisionTransformer,
    sinusoidal_positions,
)
from pictures import draw_attention, plot_confusion_matrix, plot_learning_curves, plot_roc, plot_top3
from scores import classification_metrics, export_metrics
from torch import nn
from torch.utils.data import DataLoader, Subset
from torchvision import datasets
from torchvision.transforms import v2

STUDENT_ID = "400102008"
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(42)

# %% [markdown]
# ## Images, with RandAugment for training

# %%
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)

with zipfile.ZipFile("dataset.zip") as archive:
    archive.extractall("data")

to_tensor = [v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)]
plain_transform = v2.Compose(to_tensor)
train_transform = v2.Compose(
    [
        v2.RandomCrop(32, padding=4, padding_mode="reflect"),
        v2.RandomHorizontalFlip(),
        v2.RandAugment(num_ops=1, magnitude=4),
        *to_tensor,
    ]
)
augmented = datasets.ImageFolder("data/train", train_transform)
plain = datasets.ImageFolder("data/train", plain_transform)
test_images = datasets.ImageFolder("data/test", plain_transform)
class_names = plain.classes

generator = torch.Generator().manual_seed(2)
order = torch.randperm(len(plain), generator=generator)
validation_order, train_order = order.tensor_split([len(plain) // 10])
loaders = {
    "train": DataLoader(Subset(augmented, train_order.tolist()), batch_size=64, shuffle=True, drop_last=True),
    "validation": DataLoader(Subset(plain, validation_order.tolist()), batch_size=200),
}
test_loader = DataLoader(test_images, batch_size=200)


# %%
def attention_map(model, image):
    mode = model.training
    parameter = next(model.parameters())
    with torch.no_grad():
        weights = model.eval().attention(image.to(parameter.device).unsqueeze(0))
    model.train(mode)
    weights = weights[0].mean(dim=0).cpu()
    n = weights.shape[-1]
    has_class_token = math.isqrt(n) ** 2 != n
    values = weights[0, 1:] if has_class_token else weights.mean(dim=0)
    grid = values.unflatten(0, (math.isqrt(len(values)), -1)) / values.max()
    patch = image.shape[-1] // grid.shape[-1]
    return grid.repeat_interleave(patch, 0).repeat_interleave(patch, 1)


def plot_attention(model, images, labels, class_names, mean, std):
    maps = [attention_map(model, image) for image in images]
    return draw_attention(maps, images, labels, class_names, mean, std)


def parameter_table(model):
    """By the first two parts of the parameters' names: `stem.0`, `group1.1`, `positions`."""
    table = {}
    for name, parameter in model.named_parameters():
        part = ".".join(name.split(".")[:2])
        table[part] = table.get(part, 0) + parameter.numel()
    return list(table.items())


# %% [markdown]
# ## Training


# %%
def warmup_cosine(step, warmup_steps, total_steps):
    if step >= total_steps:
        return 0.0
    if step < warmup_steps:
        return step / warmup_steps
    return math.cos(math.pi / 2 * (step - warmup_steps) / (total_steps - warmup_steps)) ** 2


def train_epoch(model, loader, criterion, optimizer, scheduler, device):
    model.train()
    sums = torch.zeros(3, dtype=torch.float64)  # loss, hits, images
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        logits = model(images)
        loss = criterion(logits, labels)
        model.zero_grad()
        loss.backward()
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        size = labels.numel()
        hits = (logits.detach().argmax(-1) == labels).sum()
        sums += torch.tensor([loss.item() * size, hits.item(), size], dtype=torch.float64)
    loss, accuracy, _ = (sums / sums[2]).tolist()
    return loss, accuracy


@torch.no_grad()
def evaluate(model, loader, criterion, device):
    model.eval()
    batches = [(model(images.to(device)), labels.to(device)) for images, labels in loader]
    total = sum(criterion(logits, labels).item() * len(labels) for logits, labels in batches)
    logits = torch.cat([logits for logits, _ in batches]).cpu()
    targets = torch.cat([labels for _, labels in batches]).cpu()
    predictions = logits.argmax(dim=1)
    return {
        "loss": total / len(targets),
        "accuracy": (predictions == targets).double().mean().item(),
        "targets": targets,
        "predictions": predictions,
        "probabilities": torch.softmax(logits, dim=1),
    }


def fit(model, loaders, epochs, device):
    model = model.to(device)
    criterion = nn.CrossEntropyLoss()
    # weight decay for matrices and kernels alone
    groups = [
        {"params": [p for p in model.parameters() if p.requires_grad and p.ndim >= 2], "weight_decay": 0.05},
        {"params": [p for p in model.parameters() if p.requires_grad and p.ndim < 2], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=2e-3)
    total = epochs * len(loaders["train"])
    warmup = max(1, total // 8)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: warmup_cosine(step, warmup, total))
    history, best, weights = [], -math.inf, {}
    for epoch in range(1, epochs + 1):
        loss, accuracy = train_epoch(model, loaders["train"], criterion, optimizer, schedule, device)
        found = evaluate(model, loaders["validation"], criterion, device)
        history.append(
            {
                "epoch": epoch,
                "train_loss": loss,
                "train_accuracy": accuracy,
                "loss": found["loss"],
                "accuracy": found["accuracy"],
            }
        )
        print(history[-1])
        if found["accuracy"] > best:
            best = found["accuracy"]
            weights = {name: value.detach().clone() for name, value in model.state_dict().items()}
    if weights:
        model.load_state_dict(weights)
    return history


# %% [markdown]
# ## Both models

# %%
VIT_EPOCHS, RESNET_EPOCHS = 7, 3

start = time.time()
vit = VisionTransformer(
    patch_size=4, dim=64, depth=4, heads=4, mlp_ratio=2.0, dropout=0.0, num_classes=len(class_names), pool="mean"
)
vit_history = fit(vit, loaders, VIT_EPOCHS, device)
torch.save(vit.state_dict(), f"{STUDENT_ID}_CIFAR10_vit.pth")
print(f"The ViT took {time.time() - start:.0f} s.")

# %%
start = time.time()
resnet = ResNet18(num_classes=len(class_names), width=16)
resnet_history = fit(resnet, loaders, RESNET_EPOCHS, device)
torch.save(resnet.state_dict(), f"{STUDENT_ID}_CIFAR10_resnet.pth")
print(f"The ResNet took {time.time() - start:.0f} s.")

# %%
criterion = nn.CrossEntropyLoss()
measures, found = {}, {}
for name, model, history in (("vit", vit, vit_history), ("resnet", resnet, resnet_history)):
    found[name] = evaluate(model, test_loader, criterion, device)
    measures[name] = classification_metrics(found[name]["targets"], found[name]["probabilities"])
    print(name, f"{found[name]['accuracy']:.4f}", parameter_table(model))
    plot_learning_curves(history)
    plot_confusion_matrix(measures[name]["confusion"], class_names)
    plot_roc(found[name]["targets"], found[name]["probabilities"], class_names)
export_metrics(measures, f"{STUDENT_ID}_metrics.csv")

# %%
where = torch.arange(5, len(test_images), len(test_images) // 5)[:5].tolist()
images = torch.stack([test_images[i][0] for i in where])
labels = torch.tensor([test_images[i][1] for i in where])
plot_attention(vit, images, labels, class_names, MEAN, STD)
plot_top3(images, labels, found["vit"]["probabilities"][where], class_names, MEAN, STD)

# %% [markdown]
# ## Study

# %%
RUN_STUDY = False  # the table is there
COLUMNS = [
    "patch_size", "dim", "depth", "heads", "mlp_ratio", "positions", "epochs", "seed", "parameters",
    "validation_accuracy",
]  # fmt: skip
BASE = dict(zip(COLUMNS, (8, 48, 2, 4, 2.0, "learned", 4)))

if RUN_STUDY:
    plan = [(BASE, seed) for seed in (1, 2, 3)]
    for column, value in (
        ("patch_size", 4),
        ("dim", 64),
        ("depth", 3),
        ("depth", 5),
        ("heads", 2),
        ("mlp_ratio", 4.0),
        ("positions", "sinusoidal"),
    ):
        plan.append(({**BASE, column: value}, 1))
    with open(f"{STUDENT_ID}_study.csv", "w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(COLUMNS)
        for values, seed in plan:
            torch.manual_seed(seed)
            small = VisionTransformer(
                patch_size=values["patch_size"],
                dim=values["dim"],
                depth=values["depth"],
                heads=values["heads"],
                mlp_ratio=values["mlp_ratio"],
                positions=values["positions"],
                dropout=0.0,
                num_classes=len(class_names),
            )
            fit(small, loaders, values["epochs"], device)
            accuracy = evaluate(small, loaders["validation"], criterion, device)["accuracy"]
            parameters = sum(p.numel() for p in small.parameters())
            table.writerow([*values.values(), seed, parameters, round(accuracy, 4)])
            file.flush()
