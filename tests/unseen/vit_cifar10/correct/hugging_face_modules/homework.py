# %% [markdown]
# # ViT and ResNet-18 on CIFAR-10
#
# The models lie in `modeling.py`, their configurations in `configuration.py`; here are training
# (`TrainingArguments`, `Trainer`), measures and pictures.

# %%
import sys
import time
import zipfile
from dataclasses import dataclass, field, replace
from pathlib import Path

try:
    sys.path.insert(0, str(Path(__file__).resolve().parent))
except NameError:
    pass

import math

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from modeling import (  # noqa: F401
    BasicBlock,
    EncoderBlock,
    MultiHeadSelfAttention,
    PatchEmbedding,
    ResNet18,
    VisionTransformer,
    sinusoidal_positions,
)
from torch import nn, optim
from torch.utils.data import DataLoader, Subset
from torchvision import datasets, transforms

STUDENT_ID = "400102001"

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(42)

# %% [markdown]
# ## The images

# %%
MEAN, STD = [0.4914, 0.4822, 0.4465], [0.2470, 0.2435, 0.2616]

with zipfile.ZipFile("dataset.zip") as archive:
    archive.extractall("data")


@dataclass
class ImageProcessor:
    image_mean: list
    image_std: list

    def __call__(self, *augmentations):
        return transforms.Compose(
            [*augmentations, transforms.ToTensor(), transforms.Normalize(self.image_mean, self.image_std)]
        )


processor = ImageProcessor(MEAN, STD)
data = {
    "train": datasets.ImageFolder(
        "data/train", processor(transforms.RandomCrop(32, padding=4), transforms.RandomHorizontalFlip())
    ),
    "validation": datasets.ImageFolder("data/train", processor()),
    "test": datasets.ImageFolder("data/test", processor()),
}
class_names = data["test"].classes
id2label = dict(enumerate(class_names))

shuffled = np.random.RandomState(42).permutation(len(data["train"]))
cut = round(0.1 * len(shuffled))
loaders = {
    "train": DataLoader(Subset(data["train"], shuffled[cut:].tolist()), batch_size=96, shuffle=True),
    "validation": DataLoader(Subset(data["validation"], shuffled[:cut].tolist()), batch_size=256),
}
test_loader = DataLoader(data["test"], batch_size=256)


# %% [markdown]
# ## What the model looks at


# %%
def attention_map(model, image):
    before = {module for module in model.modules() if module.training}
    model.eval()
    with torch.no_grad():
        attentions = model.attention(image.unsqueeze(0).to(next(model.parameters()).device))
    for module in before:
        module.training = True
    relevance = attentions.squeeze(0).mean(dim=0).cpu()
    if model.config.pooling == "cls":
        relevance = relevance[0, 1:]
    else:
        relevance = relevance.mean(dim=0)
    patch_size = model.config.patch_size
    relevance = relevance.view(image.shape[1] // patch_size, image.shape[2] // patch_size)
    relevance = relevance / relevance.max() if relevance.max() > 0 else relevance
    return relevance.repeat_interleave(patch_size, dim=0).repeat_interleave(patch_size, dim=1).numpy()


# %%
def parameter_table(model):
    """The model's own parameters, and those of each child. Tied weights belong to where they are met first."""
    named = dict(model.named_parameters())
    table = {}
    for name, parameter in named.items():
        part = name.split(".", 1)[0]
        table.setdefault(part, []).append(parameter.numel())
    return [(part, sum(numbers)) for part, numbers in table.items()]


# %% [markdown]
# ## Training


# %%
def warmup_cosine(step, warmup_steps, total_steps):
    """get_cosine_schedule_with_warmup, with half a cycle."""
    if step < warmup_steps:
        return float(step) / float(max(1, warmup_steps))
    progress = float(step - warmup_steps) / float(max(1, total_steps - warmup_steps))
    if progress >= 1.0:
        return 0.0
    return max(0.0, 0.5 * (1.0 + math.cos(math.pi * 0.5 * 2.0 * progress)))


def train_epoch(model, loader, criterion, optimizer, scheduler, device):
    model.train()
    tr_loss, num_correct, num_examples = 0.0, 0, 0
    for pixel_values, labels in loader:
        pixel_values, labels = pixel_values.to(device), labels.to(device)
        model.zero_grad()
        logits = model(pixel_values)
        loss = criterion(logits, labels)
        loss.backward()
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        tr_loss += loss.detach().item() * labels.numel()
        num_correct += logits.argmax(dim=-1).eq(labels).sum().item()
        num_examples += labels.numel()
    return tr_loss / num_examples, num_correct / num_examples


@torch.no_grad()
def evaluate(model, loader, criterion, device):
    model.eval()
    eval_loss, all_logits, all_labels = 0.0, [], []
    for pixel_values, labels in loader:
        logits = model(pixel_values.to(device))
        eval_loss += criterion(logits, labels.to(device)).item() * labels.numel()
        all_logits.append(logits.cpu())
        all_labels.append(labels.cpu())
    logits, label_ids = torch.cat(all_logits), torch.cat(all_labels)
    predictions = logits.argmax(dim=-1)
    return {
        "loss": eval_loss / label_ids.numel(),
        "accuracy": predictions.eq(label_ids).sum().item() / label_ids.numel(),
        "targets": label_ids,
        "predictions": predictions,
        "probabilities": nn.functional.softmax(logits, dim=-1),
    }


# %%
@dataclass
class TrainingArguments:
    num_train_epochs: int = 15
    learning_rate: float = 1e-3
    weight_decay: float = 0.05
    adam_beta2: float = 0.99
    warmup_ratio: float = 0.1
    metric_for_best_model: str = "eval_accuracy"
    load_best_model_at_end: bool = True


@dataclass
class TrainerState:
    epoch: int = 0
    best_metric: float | None = None
    best_model_checkpoint: dict | None = None
    log_history: list = field(default_factory=list)


class Trainer:
    def __init__(self, model, args, loaders, device):
        self.model, self.args, self.loaders, self.device = model.to(device), args, loaders, device
        self.state = TrainerState()
        self.criterion = nn.CrossEntropyLoss()

    def create_optimizer_and_scheduler(self):
        """Biases and norms are not decayed."""
        decay, rest = [], []
        for module in self.model.modules():
            for name, parameter in module.named_parameters(recurse=False):
                if not parameter.requires_grad:
                    continue
                (decay if isinstance(module, (nn.Linear, nn.Conv2d)) and name == "weight" else rest).append(parameter)
        if not decay and not rest:
            raise ValueError("nothing to train")
        groups = [
            {"params": decay, "weight_decay": self.args.weight_decay},
            {"params": rest, "weight_decay": 0.0},
        ]
        optimizer = optim.AdamW(
            [group for group in groups if group["params"]],
            lr=self.args.learning_rate,
            betas=(0.9, self.args.adam_beta2),
        )
        total = self.args.num_train_epochs * len(self.loaders["train"])
        warmup = math.ceil(total * self.args.warmup_ratio) if total > 10 else 0
        scheduler = optim.lr_scheduler.LambdaLR(optimizer, lambda step: warmup_cosine(step, warmup, total))
        return optimizer, scheduler

    def save_checkpoint_if_best(self, metrics):
        metric = metrics[self.args.metric_for_best_model]
        if self.state.best_metric is None or metric > self.state.best_metric:
            self.state.best_metric = metric
            self.state.best_model_checkpoint = {
                name: value.detach().to("cpu", copy=True) for name, value in self.model.state_dict().items()
            }

    def train(self):
        optimizer, scheduler = self.create_optimizer_and_scheduler()
        for epoch in range(1, self.args.num_train_epochs + 1):
            self.state.epoch = epoch
            loss, accuracy = train_epoch(
                self.model, self.loaders["train"], self.criterion, optimizer, scheduler, self.device
            )
            self.state.log_history.append({"epoch": epoch, "loss": loss, "accuracy": accuracy})
            output = evaluate(self.model, self.loaders["validation"], self.criterion, self.device)
            metrics = {"eval_loss": output["loss"], "eval_accuracy": output["accuracy"]}
            self.state.log_history.append({"epoch": epoch, **metrics})
            self.save_checkpoint_if_best(metrics)
            print({name: round(value, 4) for name, value in (self.state.log_history[-2] | metrics).items()})
        if self.args.load_best_model_at_end and self.state.best_model_checkpoint is not None:
            self.model.load_state_dict(self.state.best_model_checkpoint)
        return self.state


def fit(model, loaders, epochs, device):
    args = TrainingArguments(num_train_epochs=epochs)
    if isinstance(model, ResNet18):
        args = replace(args, learning_rate=3e-3, weight_decay=0.01, adam_beta2=0.999)
    return Trainer(model, args, loaders, device).train().log_history


# %% [markdown]
# ## Measures


# %%
def nested_numpify(value):
    return value.detach().cpu().numpy() if isinstance(value, torch.Tensor) else np.asarray(value)


def nan_free(numerator, denominator):
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.nan_to_num(np.true_divide(numerator, denominator), nan=0.0)


def roc_auc(label_ids, scores):
    """From the average rank of the positives."""
    positives = int(np.sum(label_ids))
    negatives = label_ids.size - positives
    if min(positives, negatives) == 0:
        return np.nan
    ranks = pd.Series(scores).rank(method="average").to_numpy()
    return (ranks[label_ids].sum() - positives * (positives + 1) / 2) / (positives * negatives)


def classification_metrics(targets, probabilities):
    label_ids, scores = nested_numpify(targets), nested_numpify(probabilities)
    label_ids = label_ids.astype(int)
    num_labels = scores.shape[1]
    predictions = np.argmax(scores, axis=1)
    confusion = np.stack(
        [np.bincount(predictions[label_ids == label], minlength=num_labels) for label in range(num_labels)]
    )
    true_positives = np.diag(confusion)
    support = confusion.sum(axis=1)
    per_label = pd.DataFrame(
        {
            "precision": nan_free(true_positives, confusion.sum(axis=0)),
            "recall": nan_free(true_positives, support),
            "roc_auc": [roc_auc(label_ids == label, scores[:, label]) for label in range(num_labels)],
        }
    )
    per_label["f1"] = nan_free(
        2 * per_label["precision"] * per_label["recall"], per_label["precision"] + per_label["recall"]
    )
    metrics = {name: np.array(per_label[name], dtype=float) for name in per_label}
    metrics |= {"confusion": confusion, "support": support, "accuracy": float(true_positives.sum() / support.sum())}
    seen = per_label[support > 0]
    weights = pd.Series(support, dtype=float)[support > 0]
    for name in per_label:
        known = seen[name].dropna()
        total = weights[known.index].sum()
        metrics[f"macro_{name}"] = float(known.mean()) if len(known) else float("nan")
        metrics[f"weighted_{name}"] = float((known * weights[known.index]).sum() / total) if total else float("nan")
    return metrics


# %%
def _rows(metrics):
    for name, value in metrics.items():
        if isinstance(value, dict):
            yield from ((f"{name}.{inner}", number) for inner, number in _rows(value))
        else:
            value = nested_numpify(value)
            if value.ndim == 1:
                yield from ((f"{name}.{index}", number) for index, number in enumerate(value.tolist()))
            elif value.ndim == 0:
                yield str(name), value.item()


def export_metrics(metrics, path):
    table = pd.DataFrame(list(_rows(metrics)), columns=["metric", "value"], dtype=object)
    table.to_csv(path, index=False, na_rep="nan")


# %% [markdown]
# ## Pictures


# %%
def plot_learning_curves(history):
    """`history` is a Trainer's log: rows of training and rows of evaluation, one after the other."""
    log = pd.DataFrame(history).groupby("epoch").first()
    fig, ax = plt.subplots(2, 1, figsize=(7, 7), sharex=True)
    log[["loss", "eval_loss"]].plot(ax=ax[0], marker="o")
    log[["accuracy", "eval_accuracy"]].plot(ax=ax[1], marker="o")
    ax[0].legend(["training", "validation"])
    ax[1].legend(["training", "validation"])
    ax[0].set(ylabel="loss", xlabel="epoch")
    ax[1].set(ylabel="accuracy", xlabel="epoch")
    return fig


def plot_confusion_matrix(matrix, class_names):
    frame = pd.DataFrame(nested_numpify(matrix), index=class_names, columns=class_names)
    fig, ax = plt.subplots(figsize=(9, 8))
    image = ax.imshow(frame, cmap="YlGnBu")
    fig.colorbar(image, ax=ax)
    half = frame.to_numpy().max() / 2
    for row in range(len(frame)):
        for column in range(len(frame)):
            count = frame.iat[row, column]
            ax.text(
                column, row, f"{int(count):d}", ha="center", va="center", color="white" if count > half else "black"
            )
    ax.set_xticks(range(len(frame)), frame.columns, rotation=90)
    ax.set_yticks(range(len(frame)), frame.index)
    ax.set(xlabel="predicted label", ylabel="true label")
    return fig


def plot_roc(targets, probabilities, class_names):
    label_ids, scores = nested_numpify(targets), nested_numpify(probabilities)
    fig, ax = plt.subplots(figsize=(7, 7))
    for label, name in enumerate(class_names):
        of_class = label_ids == label
        if of_class.any() and not of_class.all():
            steps = pd.DataFrame({"score": scores[:, label], "tpr": of_class, "fpr": ~of_class})
            steps = steps.groupby("score").sum().sort_index(ascending=False).cumsum()
            steps = steps / steps.iloc[-1]
            ax.plot(
                [0.0, *steps["fpr"]], [0.0, *steps["tpr"]], label=f"{name}: {roc_auc(of_class, scores[:, label]):.3f}"
            )
    ax.set(xlabel="false positive rate", ylabel="true positive rate", title="ROC, each class against the rest")
    ax.legend(title="AUC")
    return fig


def to_pil_like(image, mean, std):
    """uint8, (H, W, C)."""
    image = image.detach().cpu().numpy().transpose(1, 2, 0) * nested_numpify(std) + nested_numpify(mean)
    return np.rint(image.clip(0, 1) * 255).astype(np.uint8)


def plot_attention(model, images, labels, class_names, mean, std):
    fig = plt.figure(figsize=(7, 2.4 * len(images)))
    axes = fig.subplots(len(images), 3, squeeze=False)
    for number, (image, label) in enumerate(zip(images, labels)):
        picture, heat = to_pil_like(image, mean, std), attention_map(model, image)
        titles = (class_names[int(label)], "attention of the last layer", "overlay")
        for ax, title in zip(axes[number], titles):
            ax.set_title(title, fontsize=9)
            ax.axis("off")
        axes[number, 0].imshow(picture)
        axes[number, 1].imshow(heat, cmap="viridis")
        axes[number, 2].imshow(picture)
        axes[number, 2].imshow(heat, cmap="viridis", alpha=0.6)
    return fig


def plot_top3(images, labels, probabilities, class_names, mean, std):
    scores = nested_numpify(probabilities)
    fig = plt.figure(figsize=(9, 3.8 * math.ceil(len(images) / 3)), layout="constrained")
    axes = fig.subplots(math.ceil(len(images) / 3), 3, squeeze=False).ravel()
    for ax in axes:
        ax.axis("off")
    for ax, image, label, row in zip(axes, images, labels, scores):
        ax.imshow(to_pil_like(image, mean, std))
        pipeline = [{"label": class_names[i], "score": row[i]} for i in np.argsort(row)[::-1][:3]]
        lines = [f"{found['label']} ({found['score']:.1%})" for found in pipeline]
        ax.set_title(f"label: {class_names[int(label)]}\n" + "\n".join(lines), fontsize=8)
    return fig


# %% [markdown]
# ## Train both models

# %%
VIT_EPOCHS = RESNET_EPOCHS = 15

start = time.time()
vit = VisionTransformer(dim=96, depth=6, heads=4, mlp_ratio=2.0, dropout=0.0, num_classes=len(class_names))
print(vit.config)
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
measures = {}
for name, model, history in [("vit", vit, vit_history), ("resnet", resnet, resnet_history)]:
    found = evaluate(model, test_loader, criterion, device)
    measures[name] = classification_metrics(found["targets"], found["probabilities"])
    print(name, f"{found['accuracy']:.4f}", parameter_table(model))
    plot_learning_curves(history)
    plot_confusion_matrix(measures[name]["confusion"], class_names)
    plot_roc(found["targets"], found["probabilities"], class_names)
export_metrics(measures, f"{STUDENT_ID}_metrics.csv")

# %%
images, labels = next(iter(test_loader))
images, labels = images[:6], labels[:6]
plot_attention(vit, images, labels, class_names, MEAN, STD)
with torch.no_grad():
    probabilities = nn.functional.softmax(vit.eval()(images.to(device)), dim=-1).cpu()
plot_top3(images, labels, probabilities, class_names, MEAN, STD)

# %% [markdown]
# ## Study

# %%
RUN_STUDY = True


@dataclass(frozen=True)
class StudyArguments:
    patch_size: int = 8
    dim: int = 48
    depth: int = 2
    heads: int = 4
    mlp_ratio: float = 4.0
    positions: str = "sinusoidal"
    epochs: int = 6

    def run(self, seed):
        torch.manual_seed(seed)
        sizes = {name: value for name, value in vars(self).items() if name != "epochs"}
        model = VisionTransformer(**sizes, dropout=0.0, num_classes=len(class_names))
        parameters = sum(parameter.numel() for parameter in model.parameters())
        fit(model, loaders, self.epochs, device)
        accuracy = evaluate(model, loaders["validation"], criterion, device)["accuracy"]
        return {**vars(self), "seed": seed, "parameters": parameters, "validation_accuracy": round(accuracy, 4)}


if RUN_STUDY:
    base = StudyArguments()
    runs = [base.run(seed) for seed in (0, 1, 2)]
    for change in (
        {"patch_size": 4}, {"dim": 96}, {"depth": 4}, {"heads": 8}, {"mlp_ratio": 2.0}, {"positions": "learned"},
    ):  # fmt: skip
        runs.append(replace(base, **change).run(0))
    pd.DataFrame(runs).to_csv(f"{STUDENT_ID}_study.csv", index=False)
