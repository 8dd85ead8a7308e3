# %% [markdown]
# # Fine-tuning a pretrained Vision Transformer
#
# You are given a small Vision Transformer that others have trained on other classes. You adapt it to ten
# classes with few images: an honest split, mixed images, frozen and unfrozen parts, two stages, early
# stopping. Every part that you write says `TODO`: read its docstring, replace the line
# `raise NotImplementedError(...)` by your code, and run `pytest` in this folder to see how far you are.
#
# Names and arguments of the classes and functions are fixed. All numbers (rates, batch size, transforms,
# patience) are yours, within the bounds that README.md states. Accuracies are between 0 and 1; index arrays,
# targets and predictions may be numpy arrays, lists or tensors, on the CPU.

# %%
import math
import zipfile
from collections import deque, namedtuple
from functools import partial
from itertools import chain

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import nn, optim
from torch.utils.data import DataLoader, Subset
from torchvision import datasets, transforms

from ft_tools import AfterEachBatch, Meter, batches_on, captured_output, modes_kept

STUDENT_ID = "400104005"
RATE = 3e-3  # of stage 1; the factors are in STAGES
BATCH_SIZE = 64
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)  # of CIFAR-10's training images, red to blue

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(42)

# %% [markdown]
# ## The model, which is given
#
# The names are those of timm's Vision Transformers, with the class token first. `tiny_vit.safetensors`
# lies beside this file. Leave this section as it is: what is measured is your training of this very model.


# %%
class PatchEmbed(nn.Module):
    """Cuts images into patches, and makes a token of each: (batch, patches, dim), row by row."""

    def __init__(self, patch_size, dim):
        super().__init__()
        self.patch_size = patch_size
        self.proj = nn.Conv2d(3, dim, patch_size, patch_size)

    def forward(self, images):
        return self.proj(images).flatten(2).transpose(1, 2)


class Attention(nn.Module):
    """Self-attention; `qkv` gives queries, keys and values one after the other, head by head in each."""

    def __init__(self, dim, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x):
        batch, tokens, dim = x.shape
        q, k, v = self.qkv(x).reshape(batch, tokens, 3, self.num_heads, -1).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v)
        return self.proj(mixed.transpose(1, 2).reshape(batch, tokens, dim))


class Mlp(nn.Module):
    """Two layers, token by token."""

    def __init__(self, dim, hidden):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(dim, hidden), nn.Linear(hidden, dim)

    def forward(self, x):
        return self.fc2(F.gelu(self.fc1(x)))


class Block(nn.Module):
    """A block of the encoder, with its norms before its parts."""

    def __init__(self, dim, num_heads, hidden):
        super().__init__()
        self.norm1, self.attn = nn.LayerNorm(dim), Attention(dim, num_heads)
        self.norm2, self.mlp = nn.LayerNorm(dim), Mlp(dim, hidden)

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class VisionTransformer(nn.Module):
    """Maps images (batch, 3, 32, 32) to scores (batch, num_classes)."""

    def __init__(self, num_classes, image_size=32, patch_size=4, dim=96, depth=4, num_heads=4, hidden=192):
        super().__init__()
        self.patch_embed = PatchEmbed(patch_size, dim)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, dim))
        self.pos_embed = nn.Parameter(0.02 * torch.randn(1, (image_size // patch_size) ** 2 + 1, dim))
        self.blocks = nn.Sequential(*[Block(dim, num_heads, hidden) for _ in range(depth)])
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, num_classes)

    def forward(self, images):
        patches = self.patch_embed(images)
        tokens = torch.cat([self.cls_token.expand(len(images), -1, -1), patches], dim=1)
        return self.head(self.norm(self.blocks(tokens + self.pos_embed))[:, 0])


# %%
def build_model(num_classes):
    """The pretrained model, with a new head for `num_classes` classes."""
    model = VisionTransformer(num_classes)
    model.load_state_dict(load_file("tiny_vit.safetensors"), strict=False)  # it has no head
    return model


# %%
def parts(model):
    """(head, blocks, norm) of the given model, and of those of timm and torchvision.

    `blocks` is a list, the first one first; `norm` is the one behind the last block.
    """
    if hasattr(model, "encoder"):  # torchvision's
        return model.heads, list(model.encoder.layers), model.encoder.ln
    return model.head, list(model.blocks), model.norm


# %% [markdown]
# ## The split


# %%
class Deck:
    """The images of one class, shuffled; parts are dealt from it."""

    def __init__(self, label, cards, rng):
        self.label = label
        self.cards = deque(int(card) for card in rng.permutation(cards))

    def deal(self, count):
        return [self.cards.popleft() for _ in range(count)]


def stratified_split(labels, per_class, seed):
    """A tuple of index arrays; part k has exactly per_class[k] images of every class.

    Raises:
        ValueError: A class has too few.
    """
    labels = np.array([int(label) for label in labels])
    rng = np.random.default_rng(seed)
    decks = [Deck(label, np.flatnonzero(labels == label), rng) for label in sorted(set(labels.tolist()))]
    for deck in decks:
        if len(deck.cards) < sum(per_class):
            raise ValueError(f"class {deck.label} has only {len(deck.cards)} images, {sum(per_class)} are needed")
    dealt = ([card for deck in decks for card in deck.deal(count)] for count in per_class)
    return tuple(rng.permutation(np.array(part, dtype=np.int64)) for part in dealt)


# %% [markdown]
# ## Mixed images


# %%
class Pairing:
    """Who is mixed with whom, and how much: the permutation is drawn first, then the share."""

    def __init__(self, images, labels, alpha, generator):
        self.images, self.labels, self.generator = images, labels, generator
        self.partners = generator.permutation(images.shape[0]).tolist()
        self.lam = 1.0 if alpha == 0 else float(generator.beta(a=alpha, b=alpha))

    @property
    def other_images(self):
        return self.images[self.partners]

    def result(self, mixed, lam):
        return mixed, self.labels, self.labels[self.partners], lam


def mixup(images, labels, alpha, generator):
    """`lam` of each image and the rest of its partner."""
    pairing = Pairing(images, labels, alpha, generator)
    mixed = images.mul(pairing.lam).add_(pairing.other_images, alpha=1 - pairing.lam)
    return pairing.result(mixed, pairing.lam)


class Box:
    """A rectangle in an image of the given size, clipped at its border."""

    def __init__(self, size, share, generator):
        self.size = size
        self.spans = tuple(self._span(side, side * math.sqrt(share), generator) for side in size)

    @staticmethod
    def _span(side, length, generator):
        middle = generator.uniform(0, side)
        ends = (round(middle - length / 2), round(middle + length / 2))
        return slice(*(min(max(end, 0), side) for end in ends))

    @property
    def share(self):
        return math.prod(span.stop - span.start for span in self.spans) / math.prod(self.size)


def cutmix(images, labels, alpha, generator):
    """A box of the partner in each image; `lam` is what is really left of the image."""
    pairing = Pairing(images, labels, alpha, generator)
    box = Box(tuple(images.shape[2:]), 1 - pairing.lam, generator)
    mixed = images.clone()
    mixed[(..., *box.spans)] = pairing.other_images[(..., *box.spans)]
    return pairing.result(mixed, 1 - box.share)


def mixed_loss(criterion, logits, labels_a, labels_b, lam):
    """Both losses by their shares."""
    return criterion(logits, labels_a) * lam + criterion(logits, labels_b) * (1 - lam)


# %% [markdown]
# ## What learns


# %%
class Learning:
    """Sets what of a model learns; everything else is frozen and loses its old gradients."""

    def __init__(self, model):
        self.model = model
        self.head, self.blocks, self.norm = parts(model)

    def only(self, *modules):
        for parameter in self.model.parameters():
            parameter.requires_grad_(False)
            parameter.grad = None
        for parameter in chain.from_iterable(module.parameters() for module in modules):
            parameter.requires_grad_(True)

    def last(self, count):
        return deque(self.blocks, maxlen=count)


def freeze_backbone(model):
    """Exactly the head learns."""
    learning = Learning(model)
    learning.only(learning.head)


def unfreeze(model, blocks=None):
    """Head, norm and the last blocks; None: everything."""
    learning = Learning(model)
    if blocks is None:
        learning.only(model)
    else:
        learning.only(learning.head, learning.norm, *learning.last(blocks))


# %% [markdown]
# ## Training and evaluation


# %%
def unmixed(images, labels):
    """A mix that mixes nothing."""
    return images, labels, labels, 1.0


def train_one_epoch(model, loader, optimizer, criterion, device, mix=None):
    """(loss, accuracy) of one pass, means over images."""
    model.train()
    for block in parts(model)[1]:
        if all(not parameter.requires_grad for parameter in block.parameters()):
            block.eval()
    mix = unmixed if mix is None else mix
    meter = Meter("loss", "accuracy")
    for batch in batches_on(loader, device):
        images, labels_a, labels_b, lam = mix(*batch)
        optimizer.zero_grad()
        logits = model(images)
        loss = mixed_loss(criterion, logits, labels_a, labels_b, lam)
        loss.backward()
        optimizer.step()
        shares = (
            (logits.argmax(dim=1) == labels).float().mean().item() for labels in (labels_a, labels_b)
        )
        right_a, right_b = shares
        meter.add(len(images), loss=loss.item(), accuracy=lam * right_a + (1 - lam) * right_b)
    return meter["loss"], meter["accuracy"]


def answers(model, loader, device):
    """The labels and logits of every batch."""
    for images, labels in batches_on(loader, device):
        yield labels, model(images)


def evaluate(model, loader, criterion, device):
    """(loss, accuracy, targets, predictions) of images that are not trained on."""
    model.eval()
    meter = Meter("loss")
    pairs = []
    with torch.no_grad():
        for labels, logits in answers(model, loader, device):
            meter.add(len(labels), loss=criterion(logits, labels).item())
            pairs.append(torch.stack([labels, logits.argmax(dim=1)]))
    targets, predictions = torch.cat(pairs, dim=1).cpu().numpy()
    return meter["loss"], float(np.mean(targets == predictions)), targets, predictions


# %%
class EarlyStopping:
    """Counts steps without an improvement; what it remembers is closed over, nobody else can touch it."""

    def __init__(self, patience, min_delta=0.0):
        best, waited, weights = None, 0, None

        def improves(value):
            return not math.isnan(value) and (best is None or value > best + min_delta)

        def step(value, model):
            nonlocal best, waited, weights
            if improves(value):
                best, waited = value, 0
                weights = {name: tensor.detach().to("cpu", copy=True) for name, tensor in model.state_dict().items()}
            else:
                waited += 1
            return waited >= patience

        def restore(model):
            if weights is not None:
                model.load_state_dict(weights)

        self._step, self._restore, self._best = step, restore, lambda: best

    @property
    def best(self):
        return -math.inf if self._best() is None else self._best()

    def step(self, value, model):
        return self._step(float(value), model)

    def restore(self, model):
        self._restore(model)


# %%
Stage = namedtuple("Stage", "name prepare factor scheduled mixers patience")

MIXERS = {"none": unmixed, "mixup": partial(mixup, alpha=0.2), "cutmix": partial(cutmix, alpha=1.0)}
STAGES = (
    Stage("head", freeze_backbone, 1.0, False, ("none",), 3),
    Stage("everything", unfreeze, 0.1, True, ("none", "mixup", "cutmix"), 5),
)


class Trainer:
    """Runs the stages; the best weights of both are what is left in the model."""

    def __init__(self, model, loaders, device):
        self.model, self.loaders, self.device = model.to(device), loaders, device
        self.generator = np.random.default_rng(99)
        self.criteria = {
            "train": nn.CrossEntropyLoss(label_smoothing=0.1),
            "validation": nn.CrossEntropyLoss(),
        }

    def mix_of(self, stage):
        """A mix that draws one of the stage's mixers for each batch."""

        def mix(images, labels):
            mixer = MIXERS[stage.mixers[self.generator.integers(len(stage.mixers))]]
            return mixer(images, labels) if mixer is unmixed else mixer(images, labels, generator=self.generator)

        return mix if stage.mixers != ("none",) else None

    def optimizer_of(self, stage):
        learning = filter(lambda parameter: parameter.requires_grad, self.model.parameters())
        return optim.AdamW(learning, lr=RATE * stage.factor, weight_decay=0.01)

    def batches_of(self, stage, optimizer, epochs):
        """The training batches; in a scheduled stage the rate goes down after each, half a cosine in all."""
        loader = self.loaders["train"]
        if not stage.scheduled:
            return loader
        total = max(1, epochs * len(loader))
        cosine = optim.lr_scheduler.LambdaLR(
            optimizer, lambda step: 0.5 * (1 + math.cos(math.pi * min(step, total) / total))
        )
        return AfterEachBatch(loader, cosine.step)

    def epochs_of(self, stage, epochs):
        """Trains for one epoch after the other, and yields what is known after each."""
        stage.prepare(self.model)
        optimizer = self.optimizer_of(stage)
        batches, mix = self.batches_of(stage, optimizer, epochs), self.mix_of(stage)
        for _ in range(epochs):
            loss, accuracy = train_one_epoch(
                self.model, batches, optimizer, self.criteria["train"], self.device, mix
            )
            validation = evaluate(
                self.model, self.loaders["validation"], self.criteria["validation"], self.device
            )
            yield {
                "stage": stage.name,
                "training loss": loss,
                "training accuracy": accuracy,
                "validation loss": validation[0],
                "validation accuracy": validation[1],
            }

    def run(self, epochs):
        records, stoppers = [], []
        for stage, count in zip(STAGES, epochs):
            stopper = EarlyStopping(stage.patience)
            stoppers.append(stopper)
            for record in self.epochs_of(stage, count):
                records.append(record)
                if stopper.step(record["validation accuracy"], self.model):
                    break
        # the better of the two bests; at a tie that of the second stage
        max(reversed(stoppers), key=lambda stopper: stopper.best).restore(self.model)
        keys = ("stage", *(f"{part} {what}" for part in ("training", "validation") for what in ("loss", "accuracy")))
        return {key: [record[key] for record in records] for key in keys}


def fit(model, loaders, epochs, device):
    """The history of both stages."""
    return Trainer(model, loaders, device).run(epochs)


# %%
def per_class_accuracy(targets, predictions, classes):
    """(classes,), NaN for absent ones."""
    tallies = [Meter("hit") for _ in range(classes)]
    for target, prediction in zip(targets, predictions):
        tallies[int(target)].add(1, hit=int(target) == int(prediction))
    return np.array([tally["hit"] if tally.weight else np.nan for tally in tallies])


# %% [markdown]
# ## Pictures


# %%
class Picture:
    """A normalized image as it was."""

    def __init__(self, image, mean, std):
        image = image.detach().cpu()
        mean, std = (torch.tensor(values, dtype=image.dtype)[:, None, None] for values in (mean, std))
        self.pixels = (image * std + mean).clamp(0, 1).permute(1, 2, 0).numpy()

    def patches(self, size):
        """((row, column), pixels) of every patch, row by row."""
        height, width = self.pixels.shape[:2]
        for row in range(height // size):
            for column in range(width // size):
                yield (row, column), self.pixels[row * size :, column * size :][:size, :size]

    def draw(self, axes):
        axes.imshow(self.pixels)
        axes.set(title="image", xticks=[], yticks=[])


def show_patches(image, patch_size, mean, std):
    """The image on the left, its patches on the right."""
    picture = Picture(image, mean, std)
    rows, columns = (side // patch_size for side in picture.pixels.shape[:2])
    figure = plt.figure(figsize=(10, 5))
    grid = figure.add_gridspec(rows, 2 * columns + 1)
    picture.draw(figure.add_subplot(grid[:, :columns]))
    for (row, column), pixels in picture.patches(patch_size):
        axes = figure.add_subplot(grid[row, columns + 1 + column])
        axes.imshow(pixels)
        axes.set_axis_off()
    plt.show()


class AttentionMap:
    """Where the class token of the last block attends to."""

    def __init__(self, model, image):
        attention = model.blocks[-1].attn
        with captured_output(attention.qkv) as outputs, modes_kept(model), torch.no_grad():
            model.eval()
            model(image.unsqueeze(0).to(next(model.parameters()).device))
        queries, keys, _ = (
            tensor.reshape(tensor.shape[1], attention.num_heads, -1) for tensor in outputs[0].chunk(3, dim=2)
        )
        scores = torch.einsum("hd,thd->ht", queries[0], keys) / math.sqrt(keys.shape[2])
        size = model.patch_embed.patch_size
        self.weights = scores.softmax(dim=1).mean(dim=0)[1:].reshape(
            image.shape[1] // size, image.shape[2] // size
        )

    def draw(self, axes):
        axes.imshow(self.weights.cpu().numpy(), cmap="hot")
        axes.set(title="attention of the class token", xticks=[], yticks=[])


def show_attention(model, image, mean, std):
    """The image, and beside it the attention."""
    figure, places = plt.subplots(1, 2, figsize=(8, 4))
    for axes, drawn in zip(places, (Picture(image, mean, std), AttentionMap(model, image))):
        drawn.draw(axes)
    plt.show()


def plot_history(history):
    """Loss and accuracy; a dashed line with a word where the second stage begins."""
    figure, places = plt.subplots(1, 2, figsize=(12, 4))
    epochs = [number + 1 for number in range(len(history["stage"]))]
    border = history["stage"].count("head") + 0.5
    for axes, what in zip(places, ("loss", "accuracy")):
        for part, look in {"training": {"ls": "-."}, "validation": {"ls": "-"}}.items():
            axes.plot(epochs, history[f"{part} {what}"], label=part, marker="x", **look)
        axes.axvline(border, color="red", ls="--")
        axes.annotate("stage 2", (border, 0.95), xycoords=("data", "axes fraction"), color="red")
        axes.set(title=what, xlabel="epoch", ylabel=what)
        axes.legend(loc="lower left")
    plt.show()


def plot_per_class(names, accuracies):
    """A bar for each class, with its number above it."""
    figure, axes = plt.subplots(figsize=(9, 4))
    heights = [float(accuracy) for accuracy in accuracies]
    bars = axes.bar(list(names), heights, color="darkorange")
    axes.bar_label(bars, ["" if math.isnan(height) else f"{height:.0%}" for height in heights])
    axes.set(xlabel="class", ylabel="accuracy (share of the class's images)", ylim=(0, 1.1))
    axes.tick_params(axis="x", labelrotation=30)
    plt.show()


def plot_confusion_matrix(matrix, class_names):
    """Counts; true classes downwards, predicted ones to the right."""
    figure, axes = plt.subplots(figsize=(9, 8))
    shown = axes.matshow(np.asarray(matrix), cmap="YlOrRd")
    figure.colorbar(shown, ax=axes, label="images")
    for row, counts in enumerate(np.asarray(matrix).tolist()):
        for column, count in enumerate(counts):
            axes.annotate(f"{count:.0f}", (column, row), ha="center", va="center")
    axes.set_xticks(range(len(class_names)), labels=class_names, rotation=90)
    axes.set_yticks(range(len(class_names)), labels=class_names)
    axes.set(xlabel="predicted class", ylabel="true class")
    plt.show()


# %% [markdown]
# ## The images
#
# `dataset.zip` must lie beside this file. It holds `train/<class>/` and `test/<class>/`. A fifth of the
# training images is kept apart: choose whatever you choose by these *validation* images, and look at the test
# images once, at the end. Validation and test images are never augmented.

# %%
with zipfile.ZipFile("dataset.zip") as archive:
    archive.extractall("data")

plain_transform = transforms.Compose([transforms.ToTensor(), transforms.Normalize(MEAN, STD)])
train_transform = transforms.Compose(
    [transforms.RandomCrop(32, padding=3), transforms.RandomHorizontalFlip(), *plain_transform.transforms]
)
augmented_images = datasets.ImageFolder("data/train", transform=train_transform)
plain_images = datasets.ImageFolder("data/train", transform=plain_transform)
test_images = datasets.ImageFolder("data/test", transform=plain_transform)
class_names = test_images.classes

fewest = int(np.bincount(plain_images.targets).min())
training_rows, validation_rows = stratified_split(
    plain_images.targets, (fewest - fewest // 5, fewest // 5), seed=42
)
loaders = {
    "train": DataLoader(Subset(augmented_images, training_rows), batch_size=BATCH_SIZE, shuffle=True),
    "validation": DataLoader(Subset(plain_images, validation_rows), batch_size=256),
}
test_loader = DataLoader(test_images, batch_size=256)

# %% [markdown]
# ## Train it

# %%
EPOCHS = (3, 12)
model = build_model(len(class_names))
history = fit(model, loaders, EPOCHS, device)
torch.save(model.state_dict(), f"{STUDENT_ID}_Finetune.pth")
plot_history(history)

# %% [markdown]
# ## Look at it

# %%
loss, accuracy, targets, predictions = evaluate(model, test_loader, nn.CrossEntropyLoss(), device)
print(f"loss {loss:.4f}, accuracy {accuracy:.4f}")
plot_per_class(class_names, per_class_accuracy(targets, predictions, len(class_names)))
matrix = np.zeros((len(class_names), len(class_names)), dtype=int)
np.add.at(matrix, (np.asarray(targets), np.asarray(predictions)), 1)
plot_confusion_matrix(matrix, class_names)

# %%
images, labels = next(iter(test_loader))
show_patches(images[0], 4, MEAN, STD)
show_attention(model, images[0], MEAN, STD)
