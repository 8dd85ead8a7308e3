# %% [markdown]
# # Fine-tuning a pretrained Vision Transformer
#
# My other courses were all scikit-learn, so this follows its conventions: hyperparameters go into `__init__`
# unchanged, whatever is learned ends with an underscore, `fit` returns `self`, there are `partial_fit`,
# `predict`, `score` and `transform`. The functions of the assignment are thin shells around estimators.
# From scikit-learn itself I only take the base classes and metrics, and none of its splitters.

# %%
import zipfile

import matplotlib.pyplot as plt
import numpy as np
import torch
from handout import build_model, parts
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin, clone
from sklearn.metrics import ConfusionMatrixDisplay, accuracy_score, recall_score
from sklearn.utils import check_random_state
from torch import nn, optim
from torch.utils.data import DataLoader, Subset
from torchvision import datasets, transforms

STUDENT_ID = "400714385"
RATE = 2.5e-3
PATIENCE = 6
BATCH_SIZE = 64
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(42)


# %% [markdown]
# ## The split


# %%
def column(values):
    """Like `column_or_1d`: labels of whatever kind as a vector of integers."""
    if torch.is_tensor(values):
        values = values.detach().cpu().numpy()
    return np.asarray(values, dtype=np.int64).ravel()


class ExactStratifiedSplit(BaseEstimator):
    """A splitter of my own: exactly `per_class[k]` of every class in part k."""

    def __init__(self, per_class, random_state=None):
        self.per_class = per_class
        self.random_state = random_state

    def get_n_splits(self):
        return len(self.per_class)

    def split(self, y):
        y = column(y)
        random = check_random_state(self.random_state)
        classes, encoded, counts = np.unique(y, return_inverse=True, return_counts=True)
        sizes = np.asarray(self.per_class, dtype=int)
        for label, count in zip(classes, counts):
            if count < sizes.sum():
                raise ValueError(
                    f"The class {label} has only {count} members, which is fewer than the {sizes.sum()} asked for."
                )
        # a random order of all, made stable by class: rows of one class lie together, shuffled
        order = random.permutation(len(y))
        order = order[np.argsort(encoded[order], kind="stable")]
        begins = np.cumsum(counts) - counts  # of each class in `order`
        start = 0
        for size in sizes:
            positions = begins[:, None] + start + np.arange(size)[None, :]
            yield order[positions.ravel()]
            start += size


def stratified_split(labels, per_class, seed):
    return tuple(ExactStratifiedSplit(per_class, random_state=int(seed) % 2**32).split(labels))


# %% [markdown]
# ## Mixed images
#
# Transformers for batches: `fit` draws what is random (`lam_`, `order_`, `mask_`), `transform` applies it.


# %%
class BatchMixer(TransformerMixin, BaseEstimator):
    def __init__(self, alpha=1.0, generator=None):
        self.alpha = alpha
        self.generator = generator

    def fit(self, X, y=None):
        self.order_ = torch.as_tensor(self.generator.permutation(X.shape[0]))
        self.lam_ = float(self.generator.beta(self.alpha, self.alpha)) if self.alpha else 1.0
        return self

    def partners(self, values):
        return values[self.order_.to(values.device)]


class MixUp(BatchMixer):
    def transform(self, X):
        return X * self.lam_ + self.partners(X) * (1 - self.lam_)


class CutMix(BatchMixer):
    def fit(self, X, y=None):
        super().fit(X, y)
        shape = np.array(X.shape[-2:])
        sides = np.rint(shape * np.sqrt(1 - self.lam_)).astype(int)
        corner = self.generator.integers(0, shape - sides + 1)  # the rectangle always fits
        (top, left), (bottom, right) = corner, corner + sides
        self.mask_ = torch.zeros(*shape.tolist(), dtype=torch.bool, device=X.device)
        self.mask_[top:bottom, left:right] = True
        self.lam_ = 1.0 - float(sides.prod()) / float(shape.prod())
        return self

    def transform(self, X):
        X = X.clone()
        X.masked_scatter_(self.mask_, self.partners(X)[..., self.mask_])
        return X


def mixed_by(mixer, images, labels):
    mixed = mixer.fit(images).transform(images)
    return mixed, labels, mixer.partners(labels), mixer.lam_


def mixup(images, labels, alpha, generator):
    return mixed_by(MixUp(alpha, generator), images, labels)


def cutmix(images, labels, alpha, generator):
    return mixed_by(CutMix(alpha, generator), images, labels)


def mixed_loss(criterion, logits, labels_a, labels_b, lam):
    loss = lam * criterion(logits, labels_a)
    return loss + (1 - lam) * criterion(logits, labels_b)


# %% [markdown]
# ## What learns
#
# A selector in the manner of `SelectKBest`: `get_support` gives a boolean mask over the parameters.


# %%
class LearningSelector(BaseEstimator):
    """Which parameters learn.

    Parameters: `blocks`, a number or 'all'; `norm`, whether the final norm learns.
    """

    def __init__(self, blocks=0, norm=True):
        self.blocks = blocks
        self.norm = norm

    def fit(self, model):
        head, blocks, norm = parts(model)
        self.parameters_ = list(model.parameters())
        if self.blocks == "all":
            self.support_ = np.ones(len(self.parameters_), dtype=bool)
            return self
        chosen = nn.ModuleList([head])
        chosen.extend([norm] if self.norm else [])
        chosen.extend(block for number, block in enumerate(blocks) if number >= len(blocks) - self.blocks)
        ids = [id(p) for p in chosen.parameters()]
        self.support_ = np.isin([id(p) for p in self.parameters_], ids)
        return self

    def get_support(self):
        return self.support_

    def apply(self):
        for parameter, learns in zip(self.parameters_, self.support_.tolist()):
            parameter.requires_grad = learns


def freeze_backbone(model):
    LearningSelector(blocks=0, norm=False).fit(model).apply()


def unfreeze(model, blocks=None):
    LearningSelector(blocks="all" if blocks is None else blocks).fit(model).apply()


# %% [markdown]
# ## Training and evaluation


# %%
class NetworkClassifier(ClassifierMixin, BaseEstimator):
    """A network that exists already, with the usual methods; X is a loader of (images, labels)."""

    def __init__(self, model=None, optimizer=None, criterion=None, device="cpu", mix=None):
        self.model = model
        self.optimizer = optimizer
        self.criterion = criterion
        self.device = device
        self.mix = mix

    def partial_fit(self, loader):
        """One pass; sets `loss_` and `accuracy_`."""
        self._training_mode()
        losses, accuracies, sizes = [], [], []
        for images, labels in loader:
            images, labels = images.to(self.device), labels.to(self.device)
            if self.mix is None:
                logits = self.model(images)
                loss = self.criterion(logits, labels)
                sides = [(1.0, labels)]
            else:
                images, labels_a, labels_b, lam = self.mix(images, labels)
                logits = self.model(images)
                loss = mixed_loss(self.criterion, logits, labels_a, labels_b, lam)
                sides = [(float(lam), labels_a), (1 - float(lam), labels_b)]
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            found = column(logits.argmax(dim=1))
            accuracies.append(sum(share * accuracy_score(column(side), found) for share, side in sides))
            losses.append(loss.item())
            sizes.append(len(found))
        self.loss_ = float(np.average(losses, weights=sizes))
        self.accuracy_ = float(np.average(accuracies, weights=sizes))
        return self

    def _training_mode(self):
        self.model.train()
        for block in parts(self.model)[1]:
            if all(not p.requires_grad for p in block.parameters()):
                block.eval()

    @torch.no_grad()
    def decision_function(self, loader):
        """(logits, labels) of all images, in the loader's order."""
        self.model.eval()
        batches = [(self.model(images.to(self.device)).cpu(), labels.cpu()) for images, labels in loader]
        logits, labels = zip(*batches)
        self.batch_sizes_ = [len(batch) for batch in labels]
        return torch.cat(logits), torch.cat(labels)

    def predict(self, loader):
        return column(self.decision_function(loader)[0].argmax(dim=1))

    def score(self, loader):
        logits, labels = self.decision_function(loader)
        return float(accuracy_score(column(labels), column(logits.argmax(dim=1))))


def train_one_epoch(model, loader, optimizer, criterion, device, mix=None):
    network = NetworkClassifier(model, optimizer, criterion, device, mix).partial_fit(loader)
    return network.loss_, network.accuracy_


def evaluate(model, loader, criterion, device):
    network = NetworkClassifier(model, criterion=criterion, device=device)
    logits, labels = network.decision_function(loader)
    # batch by batch, where the criterion lives
    pairs = zip(logits.split(network.batch_sizes_), labels.split(network.batch_sizes_))
    losses = [float(criterion(z.to(device), y.to(device))) for z, y in pairs]
    loss = float(np.average(losses, weights=network.batch_sizes_))
    targets, predictions = column(labels), column(logits.argmax(dim=1))
    return loss, float(accuracy_score(targets, predictions)), targets, predictions


# %%
class EarlyStopping(BaseEstimator):
    def __init__(self, patience, min_delta=0.0):
        self.patience = patience
        self.min_delta = min_delta

    def step(self, value, model):
        value = float(value)
        if not hasattr(self, "n_steps_without_"):
            self.n_steps_without_ = 0
        if self._improves(value):
            self.best_score_ = value
            self.best_weights_ = {k: v.cpu().clone() for k, v in model.state_dict().items()}
            self.n_steps_without_ = 0
        else:
            self.n_steps_without_ += 1
        return self.n_steps_without_ >= self.patience

    def _improves(self, value):
        if np.isnan(value):
            return False
        return not hasattr(self, "best_score_") or value > self.best_score_ + self.min_delta

    def restore(self, model):
        if hasattr(self, "best_weights_"):
            model.load_state_dict(self.best_weights_)


# %% [markdown]
# ## Two stages


# %%
class StagedTrainer(BaseEstimator):
    """One stage. The same class does both, with other hyperparameters."""

    def __init__(self, selector=None, rate=RATE, anneal=False, patience=None, max_iter=1, weight_decay=0.02,
                 smoothing=0.05, mix_probability=0.0, alpha=0.3, device="cpu", random_state=0):  # fmt: skip
        self.selector = selector
        self.rate = rate
        self.anneal = anneal
        self.patience = patience
        self.max_iter = max_iter
        self.weight_decay = weight_decay
        self.smoothing = smoothing
        self.mix_probability = mix_probability
        self.alpha = alpha
        self.device = device
        self.random_state = random_state

    def fit(self, model, loaders):
        selector = clone(self.selector).fit(model)
        selector.apply()
        learning = [p for p, chosen in zip(selector.parameters_, selector.get_support()) if chosen]
        optimizer = optim.NAdam(
            learning, lr=self.rate, weight_decay=self.weight_decay, decoupled_weight_decay=True
        )
        schedule = optim.lr_scheduler.CosineAnnealingLR(optimizer, max(self.max_iter, 1)) if self.anneal else None
        criterion = nn.CrossEntropyLoss(label_smoothing=self.smoothing)
        stopping = None if self.patience is None else EarlyStopping(self.patience)
        self.generator_ = np.random.default_rng(self.random_state)
        self.curves_ = {"train_loss": [], "train_score": [], "validation_loss": [], "validation_score": []}

        for _ in range(self.max_iter):
            trained = train_one_epoch(
                model, loaders["train"], optimizer, criterion, self.device, self._mix if self.mix_probability else None
            )
            validated = evaluate(model, loaders["validation"], criterion, self.device)[:2]
            for curve, value in zip(self.curves_.values(), trained + validated):
                curve.append(value)
            if schedule is not None:
                schedule.step()
            if stopping is not None and stopping.step(validated[1], model):
                break
        if stopping is not None:
            stopping.restore(model)
        self.n_iter_ = len(self.curves_["train_loss"])
        return self

    def _mix(self, images, labels):
        if self.generator_.random() >= self.mix_probability:
            return images, labels, labels, 1.0
        mixing = mixup if self.generator_.random() < 0.5 else cutmix
        return mixing(images, labels, self.alpha, self.generator_)


def fit(model, loaders, epochs, device):
    model.to(device)
    first = StagedTrainer(
        LearningSelector(blocks=0, norm=False), rate=RATE, max_iter=epochs[0], device=device, random_state=1
    )
    second = clone(first).set_params(
        selector=LearningSelector(blocks="all"), rate=RATE / 10, anneal=True, patience=PATIENCE, max_iter=epochs[1],
        mix_probability=0.5, random_state=2,
    )  # fmt: skip
    stages = [stage.fit(model, loaders) for stage in (first, second)]
    history = {name: sum((stage.curves_[name] for stage in stages), []) for name in first.curves_}
    history["n_iter"] = [stage.n_iter_ for stage in stages]  # stage 2 begins after the first n_iter[0] epochs
    return history


# %%
def per_class_accuracy(targets, predictions, classes):
    """The accuracy within a class is its recall."""
    targets, predictions = column(targets), column(predictions)
    if targets.size == 0:
        return np.full(classes, np.nan)
    return recall_score(targets, predictions, labels=np.arange(classes), average=None, zero_division=np.nan)


# %% [markdown]
# ## Pictures


# %%
class Normalizer(TransformerMixin, BaseEstimator):
    """`inverse_transform` gives pixels back: (height, width, channels), between 0 and 1."""

    def __init__(self, mean, std):
        self.mean = mean
        self.std = std

    def inverse_transform(self, X):
        pixels = np.moveaxis(X.detach().cpu().numpy(), 0, -1)
        return np.clip(pixels * np.asarray(self.std) + np.asarray(self.mean), 0, 1)


def draw(axes, pixels, title=None):
    axes.imshow(pixels if pixels.shape[-1] == 3 else pixels[..., 0], cmap="gray", vmin=0, vmax=1)
    axes.set(xticks=(), yticks=())
    if title:
        axes.set_title(title)


def show_patches(image, patch_size, mean, std):
    pixels = Normalizer(mean, std).inverse_transform(image)
    # (rows * columns, patch, patch, channels), as `extract_patches_2d` would do without overlap
    rows, columns = pixels.shape[0] // patch_size, pixels.shape[1] // patch_size
    patches = pixels[: rows * patch_size, : columns * patch_size]
    patches = patches.reshape(rows, patch_size, columns, patch_size, -1).swapaxes(1, 2)
    patches = patches.reshape(rows * columns, patch_size, patch_size, -1)

    figure = plt.figure(figsize=(4 + columns * 0.6, max(3.5, rows * 0.6)))
    draw(figure.add_axes((0.02, 0.05, 0.42, 0.85)), pixels, "image")
    width, height = 0.5 / columns, 0.85 / rows
    for number, patch in enumerate(patches):
        row, col = divmod(number, columns)
        place = (0.48 + col * width, 0.05 + (rows - 1 - row) * height, 0.9 * width, 0.9 * height)
        draw(figure.add_axes(place), patch)


# %%
class ClassTokenAttention(TransformerMixin, BaseEstimator):
    """(n, channels, height, width) -> (n, rows, columns): mean over the heads of the last block."""

    def __init__(self, model):
        self.model = model

    def transform(self, X):
        attention = parts(self.model)[1][-1].attn
        kept = []
        hook = attention.qkv.register_forward_hook(lambda m, i, o: kept.append(o.detach().cpu()))
        try:
            with torch.no_grad():
                self.model(X.to(next(self.model.parameters()).device))
        finally:
            hook.remove()
        n, tokens, triple = kept[0].shape
        qkv = kept[0].reshape(n, tokens, 3, attention.num_heads, triple // 3 // attention.num_heads)
        queries, keys = qkv[:, :, 0].transpose(1, 2), qkv[:, :, 1].transpose(1, 2)
        weights = torch.softmax(queries @ keys.transpose(2, 3) / np.sqrt(keys.shape[-1]), dim=-1)
        of_class = weights.mean(dim=1)[:, 0, 1:].numpy()
        patch = self.model.patch_embed.patch_size
        return of_class.reshape(n, X.shape[2] // patch, X.shape[3] // patch)


def show_attention(model, image, mean, std):
    (attention,) = ClassTokenAttention(model).transform(image[None])
    _, (left, right) = plt.subplots(1, 2, figsize=(8, 4))
    draw(left, Normalizer(mean, std).inverse_transform(image), "image")
    right.imshow(attention, cmap="hot")
    right.set(title="class token's attention (mean of heads)", xticks=(), yticks=())


# %%
def plot_history(history):
    """In the look of `LearningCurveDisplay`."""
    n_epochs = len(history["train_loss"])
    _, panels = plt.subplots(1, 2, figsize=(11, 4))
    for panel, (key, label) in zip(panels, {"loss": "Loss", "score": "Accuracy"}.items()):
        panel.plot(np.arange(1, n_epochs + 1), history[f"train_{key}"], "o-", label="Train")
        panel.plot(np.arange(1, n_epochs + 1), history[f"validation_{key}"], "o-", label="Validation")
        panel.axvspan(history["n_iter"][0] + 0.5, n_epochs + 0.5, alpha=0.1, color="green", label="Stage 2")
        panel.set(xlabel="Epoch", ylabel=label, title=f"{label} in both stages")
        panel.legend()


def plot_per_class(names, accuracies):
    _, axes = plt.subplots(figsize=(8, 4))
    positions = np.arange(len(names))
    axes.bar(positions, np.asarray(accuracies, dtype=float), tick_label=list(names))
    axes.tick_params(axis="x", rotation=45)
    axes.set(xlabel="Class", ylabel="Accuracy (recall)", ylim=(0, 1))
    plt.tight_layout()


def plot_confusion_matrix(matrix, class_names):
    matrix = np.asarray(matrix).astype(int)
    display = ConfusionMatrixDisplay(matrix, display_labels=list(class_names))
    _, axes = plt.subplots(figsize=(8, 8))
    display.plot(ax=axes, cmap="Blues", values_format="d", xticks_rotation=45, colorbar=False)
    plt.tight_layout()


# %% [markdown]
# ## The images

# %%
with zipfile.ZipFile("dataset.zip") as archive:
    archive.extractall("data")

plain_transform = transforms.Compose([transforms.ToTensor(), transforms.Normalize(MEAN, STD)])
train_transform = transforms.Compose(
    [transforms.RandomHorizontalFlip(), transforms.RandomResizedCrop(32, scale=(0.8, 1.0)), plain_transform]
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

# %%
EPOCHS = (3, 12)
model = build_model(len(class_names))
history = fit(model, loaders, EPOCHS, device)
torch.save(model.state_dict(), f"{STUDENT_ID}_Finetune.pth")
plot_history(history)

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
plt.show()
