# %% [markdown]
# # Vision Transformer for steel surface defects
#
# The code around the model is organized the way I know from Lightning: a data module, a module with
# `training_step` / `validation_step` / `configure_optimizers`, a `Trainer` with callbacks. It is a few dozen lines of
# plain Python below. The loop over the batches is still the manual one in `train_epoch`.

# %%
import random
import shutil
import tempfile
import time
import zipfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import seaborn as sns
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.metrics import confusion_matrix
from torch import optim
from torch.utils.data import DataLoader, Subset
from torchvision import datasets, transforms

STUDENT_ID = "400109977"


def seed_everything(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
seed_everything(42)

# %% [markdown]
# ## 1. The data: unzip and split


# %%
def find_class_folders(root):
    """The folder that holds one folder per class: `root` itself, or a single folder inside it."""
    folders = [path for path in root.iterdir() if path.is_dir() and path.name != "__MACOSX"]
    return find_class_folders(folders[0]) if len(folders) == 1 else root


def split_dataset(source, destination, train_share=0.7, seed=42):
    """Copies source/<class>/* to destination/train/<class> and destination/test/<class>, class by class."""
    shutil.rmtree(destination, ignore_errors=True)
    for class_folder in sorted(path for path in source.iterdir() if path.is_dir()):
        names = sorted(p.name for p in class_folder.iterdir() if p.suffix.lower() in (".jpg", ".png", ".bmp"))
        random.Random(seed).shuffle(names)
        n_train = round(train_share * len(names))
        for part, chosen in (("train", names[:n_train]), ("test", names[n_train:])):
            folder = destination / part / class_folder.name
            folder.mkdir(parents=True)
            for name in chosen:
                shutil.copy(class_folder / name, folder / name)


with zipfile.ZipFile("dataset.zip") as archive:
    archive.extractall("dataset")
split_dataset(find_class_folders(Path("dataset")), Path("data"))

# %% [markdown]
# ## 2. The data module
#
# The validation images come out of the training images, with the transform of the test images.

# %%
transform = transforms.Compose(
    [
        transforms.Resize((28, 28)),
        transforms.Grayscale(num_output_channels=1),
        transforms.ToTensor(),
        transforms.Normalize((0.5,), (0.5,)),
    ]
)
train_transform = transforms.Compose(
    [
        transforms.RandomHorizontalFlip(),
        transforms.RandomVerticalFlip(),
        transforms.ColorJitter(brightness=0.1, contrast=0.1),
        transform,
    ]
)
BATCH_SIZE = 50


class DefectDataModule:
    def __init__(self, root="data", batch_size=BATCH_SIZE, val_share=0.15):
        self.root, self.batch_size, self.val_share = Path(root), batch_size, val_share

    def setup(self):
        augmented = datasets.ImageFolder(self.root / "train", transform=train_transform)
        plain = datasets.ImageFolder(self.root / "train", transform=transform)
        order = torch.randperm(len(plain), generator=torch.Generator().manual_seed(42)).tolist()
        n_val = int(self.val_share * len(order))
        self.val_set, self.train_set = Subset(plain, order[:n_val]), Subset(augmented, order[n_val:])
        self.test_set = datasets.ImageFolder(self.root / "test", transform=transform)
        self.class_names = plain.classes
        return self

    def train_dataloader(self):
        return DataLoader(self.train_set, batch_size=self.batch_size, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.val_set, batch_size=self.batch_size)

    def test_dataloader(self):
        return DataLoader(self.test_set, batch_size=self.batch_size)


dm = DefectDataModule().setup()
train_loader, val_loader, test_loader = dm.train_dataloader(), dm.val_dataloader(), dm.test_dataloader()
class_names = dm.class_names
print(f"{len(dm.train_set)} training, {len(dm.val_set)} validation, {len(dm.test_set)} test images: {class_names}")


# %%
def show_samples(dataset, title, per_class=6):
    """Draws a grid of images: one row per class."""
    fig, axes = plt.subplots(len(dataset.classes), per_class, figsize=(1.5 * per_class, 9))
    for label, row in enumerate(axes):
        indices = [index for index, target in enumerate(dataset.targets) if target == label][:per_class]
        for ax, index in zip(row, indices, strict=False):
            ax.imshow(dataset[index][0].squeeze(0), cmap="gray", vmin=-1, vmax=1)
        for ax in row:
            ax.axis("off")
        row[0].set_title(dataset.classes[label], fontsize=9, loc="left")
    fig.suptitle(title)
    plt.show()


show_samples(dm.test_set, "Test images")

# %% [markdown]
# ## 3. The model


# %%
class PreNorm(nn.Module):
    """LayerNorm, then fn."""

    def __init__(self, dim, fn):
        super().__init__()
        self.add_module("norm", nn.LayerNorm(dim))
        self.fn = fn

    def forward(self, x, **kwargs):
        return self.fn(self.norm(x), **kwargs)


class FeedForward(nn.Module):
    """The linear maps as convolutions of width 1 along the sequence."""

    def __init__(self, dim, hidden_dim, dropout=0.0):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv1d(dim, hidden_dim, kernel_size=1),
            nn.GELU(),
            nn.Dropout(dropout),
            nn.Conv1d(hidden_dim, dim, kernel_size=1),
            nn.Dropout(dropout),
        )

    def forward(self, x):
        return self.net(x.transpose(-1, -2)).transpose(-1, -2)


class Attention(nn.Module):
    """Multi-head self-attention. q, k and v of a head are neighbors in the output of `to_qkv`."""

    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__()
        self.heads = heads
        self.to_qkv = nn.Linear(dim, heads * 3 * dim_head, bias=False)
        self.to_out = nn.Sequential(nn.Linear(heads * dim_head, dim), nn.Dropout(dropout))
        # a buffer, so that it is saved with the weights and moves with the model
        self.register_buffer("temperature", torch.tensor(float(dim_head)).sqrt())

    def forward(self, x):
        batch, tokens, _ = x.shape
        qkv = self.to_qkv(x).reshape(batch, tokens, self.heads, -1).transpose(1, 2)
        q, k, v = qkv.tensor_split(3, dim=-1)  # each (batch, heads, tokens, dim_head)
        attention = torch.softmax(torch.matmul(q, k.transpose(-1, -2)) / self.temperature, dim=-1)
        joined = torch.matmul(attention, v).transpose(1, 2).reshape(batch, tokens, -1)
        return self.to_out(joined)


class Transformer(nn.Module):
    def __init__(self, dim, depth, heads, dim_head, mlp_dim, dropout=0.0):
        super().__init__()
        self.blocks = nn.ModuleList(
            nn.ModuleDict(
                {
                    "attention": PreNorm(dim, Attention(dim, heads, dim_head, dropout)),
                    "feed_forward": PreNorm(dim, FeedForward(dim, mlp_dim, dropout)),
                }
            )
            for _ in range(depth)
        )

    def forward(self, x):
        for block in self.blocks:
            x = x + block["attention"](x)
            x = x + block["feed_forward"](x)
        return x


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
            raise ValueError("image_size must be divisible by patch_size")
        if pool not in ("cls", "mean"):
            raise ValueError("pool must be cls or mean")
        n_patches = (image_size // patch_size) ** 2
        self.pool = pool
        self.unfold = nn.Unfold(kernel_size=patch_size, stride=patch_size)
        # LayerNorm before and after the projection helps at learning rates like mine
        self.patch_embedding = nn.Sequential(
            nn.LayerNorm(channels * patch_size**2),
            nn.Linear(channels * patch_size**2, dim),
            nn.LayerNorm(dim),
        )
        self.class_token = nn.Parameter(torch.zeros(1, dim))
        self.class_position = nn.Parameter(torch.zeros(1, dim))
        self.positions = nn.Parameter(torch.zeros(n_patches, dim))
        for parameter in (self.class_token, self.class_position, self.positions):
            nn.init.normal_(parameter, std=0.02)
        self.dropout = nn.Dropout(emb_dropout)
        self.transformer = Transformer(dim, depth, heads, dim_head, mlp_dim, dropout)
        self.head = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, num_classes))

    def forward(self, img):
        patches = self.unfold(img).transpose(1, 2)  # (batch, patches, channels * patch_size**2)
        tokens = self.patch_embedding(patches)
        front = self.class_token.unsqueeze(0).expand(tokens.size(0), -1, -1)
        tokens = torch.cat((front, tokens), dim=1)
        tokens = tokens + torch.cat((self.class_position, self.positions))
        tokens = self.transformer(self.dropout(tokens))
        if self.pool == "mean":
            return self.head(tokens.mean(dim=1))
        return self.head(tokens[:, 0])


# %% [markdown]
# ## 4. Training and evaluation
#
# `LitClassifier` says what is done with one batch; `train_epoch` and `evaluate` go through the batches.


# %%
class LitClassifier(nn.Module):
    def __init__(self, model, lr=1e-3, weight_decay=0.0, max_epochs=1):
        super().__init__()
        self.model = model
        self.hparams = {"lr": lr, "weight_decay": weight_decay, "max_epochs": max_epochs}

    @property
    def device(self):
        return next((p.device for p in self.parameters()), device)

    def forward(self, x):
        return self.model(x)

    def training_step(self, batch, batch_idx):
        x, y = batch
        return F.cross_entropy(self(x), y)

    def validation_step(self, batch, batch_idx):
        x, y = batch
        logits = self(x)
        return {
            "loss_sum": F.cross_entropy(logits, y, reduction="sum").item(),
            "correct": (logits.argmax(dim=1) == y).sum().item(),
            "n": y.numel(),
        }

    def predict_step(self, batch, batch_idx):
        x, _ = batch
        return self(x).argmax(dim=1).cpu()

    def configure_optimizers(self):
        optimizer = optim.RAdam(
            self.parameters(),
            lr=self.hparams["lr"],
            weight_decay=self.hparams["weight_decay"],
            decoupled_weight_decay=True,
        )
        scheduler = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=self.hparams["max_epochs"], eta_min=1e-5)
        return {"optimizer": optimizer, "lr_scheduler": scheduler}

    def transfer_batch_to_device(self, batch):
        return [part.to(self.device) for part in batch]


def train_epoch(model, optimizer, data_loader, loss_history):
    """One pass over the data. `model` is the ViT (a LitClassifier is accepted, too)."""
    lit = model if isinstance(model, LitClassifier) else LitClassifier(model)
    lit.train()
    for batch_idx, batch in enumerate(data_loader):
        batch = lit.transfer_batch_to_device(batch)
        optimizer.zero_grad()
        loss = lit.training_step(batch, batch_idx)
        loss.backward()
        optimizer.step()
        if batch_idx % 100 == 0:
            print(f"[batch {batch_idx}] train_loss={loss.item():.4f}")
            loss_history.append(loss.item())


def evaluate(model, data_loader, loss_history):
    """Average loss per image and accuracy."""
    lit = model if isinstance(model, LitClassifier) else LitClassifier(model)
    lit.eval()
    with torch.inference_mode():
        outputs = [
            lit.validation_step(lit.transfer_batch_to_device(batch), batch_idx)
            for batch_idx, batch in enumerate(data_loader)
        ]
    n = sum(output["n"] for output in outputs)
    loss = sum(output["loss_sum"] for output in outputs) / n
    accuracy = sum(output["correct"] for output in outputs) / n
    loss_history.append(loss)
    print(f"loss={loss:.4f} acc={accuracy:.2%} n={n}")
    return {"loss": loss, "acc": accuracy}


# %%
class ModelCheckpoint:
    """Saves the weights whenever the monitored value has its best so far."""

    def __init__(self, path, monitor="val_loss"):
        self.path, self.monitor, self.best = Path(path), monitor, float("inf")

    def on_validation_end(self, trainer, lit):
        if trainer.logged[self.monitor] < self.best:
            self.best = trainer.logged[self.monitor]
            torch.save(lit.model.state_dict(), self.path)


class EarlyStopping:
    def __init__(self, monitor="val_loss", patience=15):
        self.monitor, self.patience, self.best, self.wait = monitor, patience, float("inf"), 0

    def on_validation_end(self, trainer, lit):
        if trainer.logged[self.monitor] < self.best:
            self.best, self.wait = trainer.logged[self.monitor], 0
        else:
            self.wait += 1
            trainer.should_stop = self.wait >= self.patience


class Trainer:
    def __init__(self, max_epochs, callbacks=()):
        self.max_epochs, self.callbacks = max_epochs, list(callbacks)
        self.should_stop = False
        self.train_losses, self.val_losses, self.logged = [], [], {}

    def fit(self, lit, optimizer, scheduler, train_dataloader, val_dataloader):
        for epoch in range(self.max_epochs):
            print(f"--- epoch {epoch}, lr={optimizer.param_groups[0]['lr']:.2e}")
            train_epoch(lit.model, optimizer, train_dataloader, self.train_losses)
            results = evaluate(lit.model, val_dataloader, self.val_losses)
            self.logged = {f"val_{name}": value for name, value in results.items()}
            scheduler.step()
            for callback in self.callbacks:
                callback.on_validation_end(self, lit)
            if self.should_stop:
                print(f"No progress any more, stopped after epoch {epoch}.")
                break

    def test(self, lit, dataloader):
        return evaluate(lit.model, dataloader, [])

    def predict(self, lit, dataloader):
        """Images, labels, predictions of one pass."""
        lit.eval()
        images, labels, predictions = [], [], []
        with torch.no_grad():
            for batch_idx, batch in enumerate(dataloader):
                predictions.append(lit.predict_step(lit.transfer_batch_to_device(batch), batch_idx))
                images.append(batch[0].cpu())
                labels.append(batch[1].cpu())
        return torch.cat(images), torch.cat(labels), torch.cat(predictions)


# %% [markdown]
# ## 5. Train, save, reload

# %%
N_EPOCHS = 60

model = ViT(
    image_size=28,
    patch_size=4,
    num_classes=6,
    channels=1,
    dim=64,
    depth=6,
    heads=4,
    mlp_dim=128,
    dim_head=32,
    dropout=0.1,
)
model.to(device)
lit = LitClassifier(model, lr=0.001, weight_decay=0.01, max_epochs=N_EPOCHS)

print(f"{'Name':<22}{'Type':<16}{'Params':>10}")
for name, child in model.named_children():
    print(f"{name:<22}{type(child).__name__:<16}{sum(p.numel() for p in child.parameters()):>10,}")
print(f"{sum(p.numel() for p in model.parameters()):,} parameters in all")

configured = lit.configure_optimizers()
optimizer, scheduler = configured["optimizer"], configured["lr_scheduler"]

# %%
start = time.time()
with tempfile.TemporaryDirectory() as folder:
    checkpoint = ModelCheckpoint(Path(folder) / "best.ckpt")
    trainer = Trainer(max_epochs=N_EPOCHS, callbacks=[checkpoint, EarlyStopping(patience=15)])
    trainer.fit(lit, optimizer, scheduler, train_loader, val_loader)
    if checkpoint.path.exists():
        model.load_state_dict(torch.load(checkpoint.path, map_location=device, weights_only=True))
print(f"Training took {time.time() - start:.1f} s.")
print("Test images:")
trainer.test(lit, test_loader)

# %%
torch.save(model.state_dict(), f"{STUDENT_ID}.pth")
torch.save(model.state_dict(), f"{STUDENT_ID}_Lab8_Homework.pth")
model.load_state_dict(torch.load(f"{STUDENT_ID}.pth", map_location=device, weights_only=True))
evaluate(model, test_loader, [])

# %%
plt.figure(figsize=(7, 4))
plt.semilogy(trainer.train_losses, label="train_loss (first batch of each epoch)")
plt.semilogy(trainer.val_losses, label="val_loss")
plt.xlabel("epoch")
plt.legend()
plt.grid(alpha=0.3)
plt.show()

# %% [markdown]
# ## 6. What has it learned?


# %%
def plot_confusion_matrix(model, data_loader, class_names):
    """Rows: true classes. Columns: predicted classes."""
    _, labels, predictions = Trainer(0).predict(LitClassifier(model), data_loader)
    counts = confusion_matrix(labels.numpy(), predictions.numpy(), labels=np.arange(len(class_names)))
    fig, ax = plt.subplots(figsize=(8, 7))
    sns.heatmap(
        counts, annot=True, fmt="d", cmap="crest", ax=ax, xticklabels=class_names, yticklabels=class_names, linewidths=1
    )
    ax.set_xlabel("Predicted label")
    ax.set_ylabel("True label")
    ax.set_xticklabels(ax.get_xticklabels(), rotation=40, ha="right")
    ax.set_yticklabels(ax.get_yticklabels(), rotation=0)
    fig.tight_layout()
    plt.show()


def plot_classwise_predictions(model, data_loader, class_names, samples_per_class=4):
    """A row per true class, with a frame that is green when the prediction is right."""
    images, labels, predictions = Trainer(0).predict(LitClassifier(model), data_loader)
    rows = {label: torch.where(labels == label)[0][:samples_per_class] for label in range(len(class_names))}
    fig, axes = plt.subplots(
        len(rows), samples_per_class, figsize=(2.1 * samples_per_class, 2.5 * len(rows)), squeeze=False
    )
    for ax in axes.flatten():
        ax.set_visible(False)
    for label, indices in rows.items():
        for column, index in enumerate(indices):
            ax = axes[label][column]
            ax.set_visible(True)
            image = images[index].mul(0.5).add(0.5).clamp(0, 1)
            ax.imshow(image.squeeze(0) if image.size(0) == 1 else image.permute(1, 2, 0), cmap="gray", vmin=0, vmax=1)
            prediction = int(predictions[index])
            ax.set_title(f"True: {class_names[label]}\nPred: {class_names[prediction]}", fontsize=8)
            ax.set_xticks([])
            ax.set_yticks([])
            for spine in ax.spines.values():
                spine.set(color="limegreen" if prediction == label else "red", linewidth=3)
    fig.tight_layout()
    plt.show()


# %%
plot_confusion_matrix(model, test_loader, class_names)
plot_classwise_predictions(model, test_loader, class_names)
