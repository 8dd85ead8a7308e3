# %% [markdown]
# # Vision Transformer for steel surface defects
#
# I learned ViTs by reading the source of a well-known image model library, and this is written from memory in that
# manner: `PatchEmbed`, `Mlp`, `DropPath`, `LayerScale`, `Block`, one fused `qkv`, `trunc_normal_`. Nothing of the
# library is imported. Names and arguments are adapted to the assignment.

# %%
import logging
import math
import random
import shutil
import time
import zipfile
from functools import partial
from pathlib import Path
from typing import Callable, Optional, Tuple, Union

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from sklearn.metrics import ConfusionMatrixDisplay
from torch import nn, optim
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

STUDENT_ID = "400107260"

_logger = logging.getLogger(__name__)

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(42)

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
# ## 2. Data sets, loaders and a first look

# %%
DEFAULT_MEAN = (0.5,)
DEFAULT_STD = (0.5,)


def create_transform(input_size=28, is_training=False, hflip=0.5, vflip=0.5, re_prob=0.0):
    tfl = [transforms.Resize((input_size, input_size)), transforms.Grayscale(num_output_channels=1)]
    if is_training:
        if hflip > 0.0:
            tfl += [transforms.RandomHorizontalFlip(p=hflip)]
        if vflip > 0.0:
            tfl += [transforms.RandomVerticalFlip(p=vflip)]
    tfl += [transforms.ToTensor(), transforms.Normalize(mean=DEFAULT_MEAN, std=DEFAULT_STD)]
    if is_training and re_prob > 0.0:
        tfl += [transforms.RandomErasing(p=re_prob, scale=(0.02, 0.1))]
    return transforms.Compose(tfl)


transform = create_transform()
transform_train = create_transform(is_training=True, re_prob=0.1)
BATCH_SIZE = 64

train_set = datasets.ImageFolder("data/train", transform=transform_train)
test_set = datasets.ImageFolder("data/test", transform=transform)
train_loader = DataLoader(train_set, batch_size=BATCH_SIZE, shuffle=True, drop_last=True)
test_loader = DataLoader(test_set, batch_size=BATCH_SIZE, shuffle=False)
class_names = train_set.classes
print(f"{len(train_set)} training images, {len(test_set)} test images, classes: {class_names}")


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


show_samples(train_set, "Training images")
show_samples(test_set, "Test images")

# %% [markdown]
# ## 3. The model


# %%
DROP_PATH_RATE = 0.0  # stochastic depth, off
INIT_VALUES = None  # LayerScale, off


def to_2tuple(x) -> Tuple[int, int]:
    return x if isinstance(x, tuple) else (x, x)


def trunc_normal_(tensor, std=0.02):
    return nn.init.trunc_normal_(tensor, mean=0.0, std=std, a=-2.0, b=2.0)


def drop_path(x, drop_prob: float = 0.0, training: bool = False, scale_by_keep: bool = True):
    """Drop paths (Stochastic Depth) per sample, when applied in main path of residual blocks."""
    if drop_prob == 0.0 or not training:
        return x
    keep_prob = 1 - drop_prob
    shape = (x.shape[0],) + (1,) * (x.ndim - 1)
    random_tensor = x.new_empty(shape).bernoulli_(keep_prob)
    if keep_prob > 0.0 and scale_by_keep:
        random_tensor.div_(keep_prob)
    return x * random_tensor


class DropPath(nn.Module):
    def __init__(self, drop_prob: float = 0.0, scale_by_keep: bool = True):
        super().__init__()
        self.drop_prob = drop_prob
        self.scale_by_keep = scale_by_keep

    def forward(self, x):
        return drop_path(x, self.drop_prob, self.training, self.scale_by_keep)

    def extra_repr(self):
        return f"drop_prob={round(self.drop_prob, 3):0.3f}"


class LayerScale(nn.Module):
    def __init__(self, dim: int, init_values: float = 1e-5, inplace: bool = False):
        super().__init__()
        self.inplace = inplace
        self.gamma = nn.Parameter(init_values * torch.ones(dim))

    def forward(self, x):
        return x.mul_(self.gamma) if self.inplace else x * self.gamma


class PatchEmbed(nn.Module):
    """2D Image to Patch Embedding"""

    def __init__(
        self,
        img_size: Union[int, Tuple[int, int]] = 224,
        patch_size: Union[int, Tuple[int, int]] = 16,
        in_chans: int = 3,
        embed_dim: int = 768,
        norm_layer: Optional[Callable] = None,
        flatten: bool = True,
        bias: bool = True,
    ):
        super().__init__()
        self.img_size = to_2tuple(img_size)
        self.patch_size = to_2tuple(patch_size)
        assert self.img_size[0] % self.patch_size[0] == 0 and self.img_size[1] % self.patch_size[1] == 0, (
            f"Patch size {self.patch_size} must divide image size {self.img_size}."
        )
        self.grid_size = tuple(s // p for s, p in zip(self.img_size, self.patch_size))
        self.num_patches = self.grid_size[0] * self.grid_size[1]
        self.flatten = flatten
        self.proj = nn.Conv2d(in_chans, embed_dim, kernel_size=self.patch_size, stride=self.patch_size, bias=bias)
        self.norm = norm_layer(embed_dim) if norm_layer else nn.Identity()

    def forward(self, x):
        B, C, H, W = x.shape
        assert H == self.img_size[0], f"Input height ({H}) doesn't match model ({self.img_size[0]})."
        assert W == self.img_size[1], f"Input width ({W}) doesn't match model ({self.img_size[1]})."
        x = self.proj(x)
        if self.flatten:
            x = x.flatten(2).transpose(1, 2)  # NCHW -> NLC
        return self.norm(x)


# %%
class PreNorm(nn.Module):
    def __init__(self, dim, fn):
        super().__init__()
        self.norm = nn.LayerNorm(dim, eps=1e-6)
        self.fn = fn

    def forward(self, x, **kwargs):
        return self.fn(self.norm(x), **kwargs)


class Mlp(nn.Module):
    """MLP as used in Vision Transformer, MLP-Mixer and related networks"""

    def __init__(
        self, in_features, hidden_features=None, out_features=None, act_layer=nn.GELU, bias=True, drop=0.0
    ):
        super().__init__()
        out_features = out_features or in_features
        hidden_features = hidden_features or in_features
        self.fc1 = nn.Linear(in_features, hidden_features, bias=bias)
        self.act = act_layer()
        self.drop1 = nn.Dropout(drop)
        self.fc2 = nn.Linear(hidden_features, out_features, bias=bias)
        self.drop2 = nn.Dropout(drop)

    def forward(self, x):
        x = self.fc1(x)
        x = self.act(x)
        x = self.drop1(x)
        x = self.fc2(x)
        x = self.drop2(x)
        return x


class FeedForward(Mlp):
    def __init__(self, dim, hidden_dim, dropout=0.0):
        super().__init__(in_features=dim, hidden_features=hidden_dim, drop=dropout)


class Attention(nn.Module):
    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__()
        self.num_heads = heads
        self.head_dim = dim_head
        self.attn_dim = heads * dim_head
        self.scale = dim_head**-0.5

        self.qkv = nn.Linear(dim, self.attn_dim * 3, bias=True)
        self.proj = nn.Linear(self.attn_dim, dim)
        self.proj_drop = nn.Dropout(dropout)

    def forward(self, x):
        B, N, _ = x.shape
        qkv = self.qkv(x).reshape(B, N, 3, self.num_heads, self.head_dim).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)

        q = q * self.scale
        attn = q @ k.transpose(-2, -1)
        attn = attn.softmax(dim=-1)
        x = attn @ v

        x = x.transpose(1, 2).reshape(B, N, self.attn_dim)
        x = self.proj(x)
        x = self.proj_drop(x)
        return x


class Block(nn.Module):
    def __init__(self, dim, num_heads, head_dim, mlp_dim, proj_drop=0.0, init_values=None, drop_path=0.0):
        super().__init__()
        self.attn = PreNorm(dim, Attention(dim, heads=num_heads, dim_head=head_dim, dropout=proj_drop))
        self.ls1 = LayerScale(dim, init_values=init_values) if init_values else nn.Identity()
        self.drop_path1 = DropPath(drop_path) if drop_path > 0.0 else nn.Identity()

        self.mlp = PreNorm(dim, FeedForward(dim, mlp_dim, dropout=proj_drop))
        self.ls2 = LayerScale(dim, init_values=init_values) if init_values else nn.Identity()
        self.drop_path2 = DropPath(drop_path) if drop_path > 0.0 else nn.Identity()

    def forward(self, x):
        x = x + self.drop_path1(self.ls1(self.attn(x)))
        x = x + self.drop_path2(self.ls2(self.mlp(x)))
        return x


class Transformer(nn.Module):
    def __init__(self, dim, depth, heads, dim_head, mlp_dim, dropout=0.0):
        super().__init__()
        dpr = [x.item() for x in torch.linspace(0, DROP_PATH_RATE, depth)]  # stochastic depth decay rule
        self.blocks = nn.Sequential(
            *[
                Block(
                    dim=dim,
                    num_heads=heads,
                    head_dim=dim_head,
                    mlp_dim=mlp_dim,
                    proj_drop=dropout,
                    init_values=INIT_VALUES,
                    drop_path=dpr[i],
                )
                for i in range(depth)
            ]
        )

    def forward(self, x):
        return self.blocks(x)


def named_apply(fn: Callable, module: nn.Module, name="", depth_first: bool = True, include_root: bool = False):
    if not depth_first and include_root:
        fn(module=module, name=name)
    for child_name, child_module in module.named_children():
        child_name = ".".join((name, child_name)) if name else child_name
        named_apply(fn=fn, module=child_module, name=child_name, depth_first=depth_first, include_root=True)
    if depth_first and include_root:
        fn(module=module, name=name)
    return module


def init_weights_vit(module: nn.Module, name: str = ""):
    """ViT weight initialization: truncated normal for linear layers, zeros for their biases"""
    if isinstance(module, nn.Linear):
        trunc_normal_(module.weight, std=0.02)
        if module.bias is not None:
            nn.init.zeros_(module.bias)


class ViT(nn.Module):
    """Vision Transformer

    A PyTorch impl of : `An Image is Worth 16x16 Words: Transformers for Image Recognition at Scale`
        - https://arxiv.org/abs/2010.11929
    """

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
        assert pool in ("cls", "mean")
        norm_layer = partial(nn.LayerNorm, eps=1e-6)
        use_fc_norm = pool == "mean"

        self.num_classes = num_classes
        self.global_pool = pool
        self.num_features = self.embed_dim = dim
        self.num_prefix_tokens = 1

        self.patch_embed = PatchEmbed(img_size=image_size, patch_size=patch_size, in_chans=channels, embed_dim=dim)
        embed_len = self.patch_embed.num_patches + self.num_prefix_tokens

        self.cls_token = nn.Parameter(torch.zeros(1, 1, dim))
        self.pos_embed = nn.Parameter(torch.randn(1, embed_len, dim) * 0.02)
        self.pos_drop = nn.Dropout(p=emb_dropout)

        self.encoder = Transformer(dim, depth, heads, dim_head, mlp_dim, dropout)
        self.norm = norm_layer(dim) if not use_fc_norm else nn.Identity()

        # Classifier Head
        self.fc_norm = norm_layer(dim) if use_fc_norm else nn.Identity()
        self.head = nn.Linear(dim, num_classes)

        self.init_weights()

    def init_weights(self):
        trunc_normal_(self.pos_embed, std=0.02)
        nn.init.normal_(self.cls_token, std=1e-6)
        named_apply(init_weights_vit, self)

    def no_weight_decay(self):
        return {"pos_embed", "cls_token"}

    def _pos_embed(self, x):
        x = torch.cat((self.cls_token.expand(x.shape[0], -1, -1), x), dim=1)
        x = x + self.pos_embed
        return self.pos_drop(x)

    def forward_features(self, x):
        x = self.patch_embed(x)
        x = self._pos_embed(x)
        x = self.encoder(x)
        x = self.norm(x)
        return x

    def forward_head(self, x, pre_logits: bool = False):
        x = x.mean(dim=1) if self.global_pool == "mean" else x[:, 0]
        x = self.fc_norm(x)
        return x if pre_logits else self.head(x)

    def forward(self, img):
        x = self.forward_features(img)
        x = self.forward_head(x)
        return x


def vit_tiny_patch4_28(**kwargs):
    model_args = dict(image_size=28, patch_size=4, num_classes=6, channels=1, dim=64, depth=6, heads=4, mlp_dim=128)
    return ViT(**dict(model_args, **kwargs))


# %% [markdown]
# ## 4. Training and evaluation


# %%
class LabelSmoothingCrossEntropy(nn.Module):
    """NLL loss with label smoothing."""

    def __init__(self, smoothing=0.1):
        super().__init__()
        assert smoothing < 1.0
        self.smoothing = smoothing
        self.confidence = 1.0 - smoothing

    def forward(self, x, target):
        logprobs = F.log_softmax(x, dim=-1)
        nll_loss = -logprobs.gather(dim=-1, index=target.unsqueeze(1)).squeeze(1)
        smooth_loss = -logprobs.mean(dim=-1)
        loss = self.confidence * nll_loss + self.smoothing * smooth_loss
        return loss.mean()


class AverageMeter:
    """Computes and stores the average and current value"""

    def __init__(self):
        self.reset()

    def reset(self):
        self.val = 0
        self.avg = 0
        self.sum = 0
        self.count = 0

    def update(self, val, n=1):
        self.val = val
        self.sum += val * n
        self.count += n
        self.avg = self.sum / self.count


def accuracy(output, target, topk=(1,)):
    """Computes the accuracy over the k top predictions, in percent"""
    maxk = min(max(topk), output.size(1))
    _, pred = output.topk(maxk, 1, True, True)
    correct = pred.t().eq(target.reshape(1, -1).expand_as(pred.t()))
    return [correct[: min(k, maxk)].reshape(-1).float().sum(0) * 100.0 / target.size(0) for k in topk]


def model_device(model):
    try:
        return next(model.parameters()).device
    except StopIteration:
        return device


LOG_INTERVAL = 100


def train_epoch(model, optimizer, data_loader, loss_history):
    loss_fn = LabelSmoothingCrossEntropy(smoothing=0.1)
    losses_m = AverageMeter()
    dev = model_device(model)

    model.train()
    for batch_idx, (input, target) in enumerate(data_loader):
        input, target = input.to(dev), target.to(dev)
        output = model(input)
        loss = loss_fn(output, target)

        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

        losses_m.update(loss.item(), input.size(0))
        if batch_idx % LOG_INTERVAL == 0:
            loss_history.append(losses_m.val)
            lr = sum(g["lr"] for g in optimizer.param_groups) / len(optimizer.param_groups)
            print(f"Train: [{batch_idx:>4d}]  Loss: {losses_m.val:#.4g} ({losses_m.avg:#.3g})  LR: {lr:.3e}")


def evaluate(model, data_loader, loss_history):
    loss_fn = nn.CrossEntropyLoss()
    losses_m, top1_m = AverageMeter(), AverageMeter()
    dev = model_device(model)

    model.eval()
    with torch.no_grad():
        for input, target in data_loader:
            input, target = input.to(dev), target.to(dev)
            output = model(input)
            losses_m.update(loss_fn(output, target).item(), input.size(0))
            top1_m.update(accuracy(output, target)[0].item(), output.size(0))

    loss_history.append(losses_m.avg)
    print(f"Test: Loss: {losses_m.avg:>6.4f}  Acc@1: {top1_m.avg:>7.3f}")
    return {"loss": losses_m.avg, "top1": top1_m.avg}


# %% [markdown]
# ## 5. Train, save, reload


# %%
def param_groups_weight_decay(model, weight_decay=0.05):
    no_decay_list = model.no_weight_decay()
    decay, no_decay = [], []
    for name, param in model.named_parameters():
        if not param.requires_grad:
            continue
        if param.ndim <= 1 or name.endswith(".bias") or name in no_decay_list:
            no_decay.append(param)
        else:
            decay.append(param)
    return [{"params": no_decay, "weight_decay": 0.0}, {"params": decay, "weight_decay": weight_decay}]


class CosineLRScheduler:
    """Cosine decay with warmup, by epoch. `step(epoch)` is called at the START of the epoch."""

    def __init__(self, optimizer, t_initial, lr_min=1e-5, warmup_t=0, warmup_lr_init=1e-5):
        self.optimizer = optimizer
        self.t_initial, self.lr_min = t_initial, lr_min
        self.warmup_t, self.warmup_lr_init = warmup_t, warmup_lr_init
        for group in optimizer.param_groups:
            group.setdefault("initial_lr", group["lr"])

    def _get_lr(self, t, base):
        if t < self.warmup_t:
            return self.warmup_lr_init + (t + 1) * (base - self.warmup_lr_init) / self.warmup_t
        return self.lr_min + 0.5 * (base - self.lr_min) * (1 + math.cos(math.pi * min(t / self.t_initial, 1.0)))

    def step(self, epoch):
        for group in self.optimizer.param_groups:
            group["lr"] = self._get_lr(epoch, group["initial_lr"])


model = vit_tiny_patch4_28(dropout=0.1, dim_head=16)
model.to(device)
print(f"Model created, param count: {sum(m.numel() for m in model.parameters()):,}")

optimizer = optim.AdamW(param_groups_weight_decay(model, weight_decay=0.05), lr=1e-3)

N_EPOCHS = 60
lr_scheduler = CosineLRScheduler(optimizer, t_initial=N_EPOCHS, warmup_t=5)

# %%
train_loss_history, test_loss_history = [], []
top1_history = []
start = time.time()
for epoch in range(N_EPOCHS):
    print(f"Epoch {epoch}/{N_EPOCHS - 1}")
    lr_scheduler.step(epoch)
    train_epoch(model, optimizer, train_loader, train_loss_history)
    metrics = evaluate(model, test_loader, test_loss_history)
    top1_history.append(metrics["top1"])
print(f"Training took {time.time() - start:.1f} s.")

# %%
torch.save(model.state_dict(), f"{STUDENT_ID}.pth")
torch.save(model.state_dict(), f"{STUDENT_ID}_Lab8_Homework.pth")
model.load_state_dict(torch.load(f"{STUDENT_ID}.pth", map_location=device, weights_only=True))
evaluate(model, test_loader, [])

# %%
fig, ax = plt.subplots(figsize=(7, 4))
ax.plot(train_loss_history, label="train (smoothed labels)")
ax.plot(test_loss_history, label="test")
ax.set_xlabel("epoch")
ax.set_ylabel("loss")
ax.legend(loc="upper left")
twin = ax.twinx()
twin.plot(top1_history, color="tab:green", linestyle="--")
twin.set_ylabel("Acc@1, test")
plt.show()

# %% [markdown]
# ## 6. What has it learned?


# %%
@torch.no_grad()
def _collect(model, data_loader):
    model.eval()
    dev = model_device(model)
    inputs, targets, preds = [], [], []
    for input, target in data_loader:
        inputs.append(input.cpu())
        targets.append(target.cpu())
        preds.append(model(input.to(dev)).argmax(dim=1).cpu())
    return torch.cat(inputs), torch.cat(targets), torch.cat(preds)


def plot_confusion_matrix(model, data_loader, class_names):
    _, targets, preds = _collect(model, data_loader)
    fig, ax = plt.subplots(figsize=(8, 7))
    ConfusionMatrixDisplay.from_predictions(
        targets.numpy(),
        preds.numpy(),
        labels=list(range(len(class_names))),
        display_labels=list(class_names),
        cmap="Blues",
        xticks_rotation=45,
        ax=ax,
    )
    ax.set_title("Confusion matrix")
    fig.tight_layout()
    plt.show()


def denormalize(x, mean=DEFAULT_MEAN, std=DEFAULT_STD):
    mean = torch.tensor(mean).view(-1, 1, 1)
    std = torch.tensor(std).view(-1, 1, 1)
    return x.mul(std).add(mean).clamp(0, 1)


def plot_classwise_predictions(model, data_loader, class_names, samples_per_class=4):
    inputs, targets, preds = _collect(model, data_loader)
    n = len(class_names)
    # one figure, one strip of images for each class
    fig = plt.figure(figsize=(2.2 * samples_per_class, 2.5 * n), layout="constrained")
    strips = [fig] if n == 1 else fig.subfigures(n, 1)
    for label, strip in enumerate(strips):
        indices = (targets == label).nonzero(as_tuple=True)[0][:samples_per_class].tolist()
        axes = strip.subplots(1, samples_per_class, squeeze=False)[0]
        for ax in axes:
            ax.axis("off")
        for ax, idx in zip(axes, indices):
            img = denormalize(inputs[idx])
            ax.imshow(img.permute(1, 2, 0).squeeze(-1) if img.shape[0] == 1 else img.permute(1, 2, 0), cmap="gray", vmin=0, vmax=1)
            ok = bool(preds[idx] == label)
            ax.set_title(f"T: {class_names[label]}\nP: {class_names[preds[idx]]}", fontsize=8, color="g" if ok else "r")
    plt.show()


# %%
plot_confusion_matrix(model, test_loader, class_names)
plot_classwise_predictions(model, test_loader, class_names)
