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
import random
import zipfile

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import nn, optim
from torch.utils.data import DataLoader, Subset
from torchvision import datasets, transforms

STUDENT_ID = "400104001"
RATE = 3e-3  # stage 1; stage 2 begins with RATE / 10
PATIENCE = 4  # epochs of stage 2 without a better validation accuracy
MIXUP_ALPHA = 0.2
CUTMIX_ALPHA = 1.0
SMOOTHING = 0.05
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
#
# scikit-learn's `train_test_split` and its relatives are what you build here.


# %%
def stratified_split(labels, per_class, seed):
    """Splits images into parts with exactly as many images of every class as is asked for.

    Args:
        labels: (n,), the class of each image: an array, a tensor or a list of whole numbers.
        per_class: How many images of every class each part gets, as in (70, 20, 10).
        seed: The same seed and the same labels give the same parts; another seed gives others.

    Returns:
        A tuple with an array of indices for each part. No index is in two parts.

    Raises:
        ValueError: A class has fewer images than the parts need.
    """
    # Step 1: collect the positions of the images of every class in a dictionary of lists.
    positions = {}
    number = 0
    for label in labels:
        label = int(label)  # works for tensors, arrays and lists
        if label not in positions:
            positions[label] = []
        positions[label].append(number)
        number = number + 1

    # Step 2: is there enough of everything?
    needed = 0
    for count in per_class:
        needed = needed + int(count)
    for label in positions:
        if len(positions[label]) < needed:
            raise ValueError(
                "class " + str(label) + " has " + str(len(positions[label])) + " images, needed: " + str(needed)
            )

    # Step 3: shuffle each class by itself and give the pieces to the parts.
    shuffler = random.Random(seed)
    result = []
    for count in per_class:
        result.append([])
    for label in sorted(positions):
        indices = positions[label]
        shuffler.shuffle(indices)
        start = 0
        for k in range(len(per_class)):
            end = start + int(per_class[k])
            for index in indices[start:end]:
                result[k].append(index)
            start = end  # the next part goes on where this one ended, so nothing is in two parts

    # Step 4: otherwise the parts would be ordered by class.
    for part in result:
        shuffler.shuffle(part)
    return tuple(result)


# %% [markdown]
# ## Mixed images
#
# Ready mixup and cutmix helpers (of timm, torchvision and others) are what you build here. `generator` is a
# `numpy.random.Generator`: draw everything from it, in whatever order you like, so that the same state gives
# the same result.


# %%
def random_partners(number, generator):
    """A list with a partner for every image: a permutation, by the shuffle of Fisher and Yates."""
    partners = []
    for i in range(number):
        partners.append(i)
    for i in range(number - 1, 0, -1):
        j = int(generator.integers(0, i + 1))
        # swap
        keep = partners[i]
        partners[i] = partners[j]
        partners[j] = keep
    return partners


# %%
def mixup(images, labels, alpha, generator):
    """Mixes every image with another one of the batch.

    Args:
        images: (batch, channels, height, width). They stay as they were.
        labels: (batch,), whole numbers.
        alpha: The share is drawn from Beta(alpha, alpha), one for the batch; 0: it is 1.
        generator: Where everything is drawn from.

    Returns:
        (mixed images, labels_a, labels_b, lam): image i of the result is
        `lam * images[i] + (1 - lam) * images[j]`, where j runs through a permutation of the batch;
        `labels_a[i]` is the label of image i, `labels_b[i]` that of image j; `lam` is a number.
    """
    batch_size = images.shape[0]

    # the share of the image itself
    if alpha > 0:
        lam = float(generator.beta(alpha, alpha))
    else:
        lam = 1.0

    # the partner of every image
    partners = random_partners(batch_size, generator)

    # the mixed images go into a new tensor, so the old images stay as they are
    mixed = torch.zeros_like(images)
    labels_b = torch.zeros_like(labels)
    for i in range(batch_size):
        j = partners[i]
        mixed[i] = lam * images[i] + (1 - lam) * images[j]
        labels_b[i] = labels[j]
    return mixed, labels, labels_b, lam


# %%
def cutmix(images, labels, alpha, generator):
    """Puts a rectangle of another image of the batch into every image, at the same place.

    Args:
        images, labels, alpha, generator: As in `mixup`. Height and width may differ.

    Returns:
        (mixed images, labels_a, labels_b, lam) as `mixup` does: one rectangle, the same for all images. `lam`
        is the share of pixels that are image i's own: what was drawn, corrected by the rectangle as it really
        is, since it may be clipped at the border and its sides are whole pixels.
    """
    batch_size = images.shape[0]
    height = images.shape[2]
    width = images.shape[3]

    if alpha > 0:
        lam = float(generator.beta(alpha, alpha))
    else:
        lam = 1.0
    partners = random_partners(batch_size, generator)

    # The rectangle has (1 - lam) of the area, so each side is the image's side times the root of that.
    cut_height = int(height * math.sqrt(1 - lam))
    cut_width = int(width * math.sqrt(1 - lam))

    # A random center. The rectangle can stick out of the image, then it is clipped.
    center_y = int(generator.integers(0, height))
    center_x = int(generator.integers(0, width))
    top = center_y - cut_height // 2
    bottom = top + cut_height
    left = center_x - cut_width // 2
    right = left + cut_width
    if top < 0:
        top = 0
    if left < 0:
        left = 0
    if bottom > height:
        bottom = height
    if right > width:
        right = width

    # Write into a copy, read from the original.
    mixed = images.clone()
    labels_b = labels.clone()
    for i in range(batch_size):
        j = partners[i]
        mixed[i, :, top:bottom, left:right] = images[j, :, top:bottom, left:right]
        labels_b[i] = labels[j]

    # the true share: pixels which are really kept
    pixels_cut = (bottom - top) * (right - left)
    lam = 1.0 - pixels_cut / (height * width)
    return mixed, labels, labels_b, lam


# %%
def mixed_loss(criterion, logits, labels_a, labels_b, lam):
    """The loss of mixed images: that of both labels, weighted by their shares.

    Args:
        criterion: The mean loss of a batch from (logits, labels). It may smooth labels by itself.
        logits: (batch, classes).
        labels_a, labels_b, lam: As `mixup` gives them.

    Returns:
        A tensor of one number, with gradients.
    """
    loss_a = criterion(logits, labels_a)
    loss_b = criterion(logits, labels_b)
    return lam * loss_a + (1 - lam) * loss_b


# %% [markdown]
# ## What learns
#
# `parts(model)` gives head, blocks and norm, whichever model it is.


# %%
def freeze_backbone(model):
    """Exactly the head learns afterwards, whatever learned before: all else needs no gradient.

    Args:
        model: One that `parts` knows. It is changed in place; nothing has to be returned.
    """
    # first everything off ...
    for parameter in model.parameters():
        parameter.requires_grad = False
    # ... then the head on again
    head, all_blocks, norm = parts(model)
    for parameter in head.parameters():
        parameter.requires_grad = True


# %%
def unfreeze(model, blocks=None):
    """Exactly the head, the final norm and the last blocks learn afterwards, whatever learned before.

    Args:
        model: One that `parts` knows. It is changed in place; nothing has to be returned.
        blocks: How many of the last blocks learn; 0: none, head and norm alone; None: everything learns,
            patches, class token and positions too.
    """
    # the easy case: everything learns
    if blocks is None:
        for parameter in model.parameters():
            parameter.requires_grad = True
        return

    # otherwise start with everything off
    for parameter in model.parameters():
        parameter.requires_grad = False

    head, all_blocks, norm = parts(model)
    for parameter in head.parameters():
        parameter.requires_grad = True
    for parameter in norm.parameters():
        parameter.requires_grad = True

    # the block with number i is one of the last ones if i >= total - blocks
    total = len(all_blocks)
    for i in range(total):
        if i >= total - blocks:
            for parameter in all_blocks[i].parameters():
                parameter.requires_grad = True


# %% [markdown]
# ## Training and evaluation


# %%
def train_one_epoch(model, loader, optimizer, criterion, device, mix=None):
    """Trains for one pass over the data.

    Args:
        model: Put into training mode here; but blocks (as `parts` gives them) of which no parameter requires
            gradients are in evaluation mode.
        loader: Yields (images, labels). The last batch may be smaller than the others.
        optimizer: Holds the parameters that learn.
        criterion: The mean loss of a batch from (logits, labels).
        device: Where the model is; batches are moved there.
        mix: None, or a function: `mix(images, labels)` gives (images, labels_a, labels_b, lam), as `mixup`
            does with its other arguments filled in.

    Returns:
        (loss, accuracy): the means over all images, as they were when each batch was trained on. With `mix`,
        the loss is that of the mixed images, and a batch's hits are
        `lam * hits of labels_a + (1 - lam) * hits of labels_b`.
    """
    model.train()
    # frozen blocks stay in evaluation mode (dropout off)
    head, all_blocks, norm = parts(model)
    for block in all_blocks:
        learns = False
        for parameter in block.parameters():
            if parameter.requires_grad:
                learns = True
        if not learns:
            block.eval()

    total_loss = 0.0
    total_hits = 0.0
    total_images = 0
    for images, labels in loader:
        images = images.to(device)
        labels = labels.to(device)
        count = len(labels)

        optimizer.zero_grad()
        if mix is None:
            logits = model(images)
            loss = criterion(logits, labels)
            predictions = logits.argmax(dim=1)
            hits = (predictions == labels).sum().item()
        else:
            images, labels_a, labels_b, lam = mix(images, labels)
            logits = model(images)
            loss = mixed_loss(criterion, logits, labels_a, labels_b, lam)
            predictions = logits.argmax(dim=1)
            hits_a = (predictions == labels_a).sum().item()
            hits_b = (predictions == labels_b).sum().item()
            hits = lam * hits_a + (1 - lam) * hits_b
        loss.backward()
        optimizer.step()

        # the last batch may be smaller, so weigh the mean loss with the number of images
        total_loss = total_loss + loss.item() * count
        total_hits = total_hits + hits
        total_images = total_images + count

    return total_loss / total_images, total_hits / total_images


# %%
def evaluate(model, loader, criterion, device):
    """Asks a model about images that it is not trained on; nothing is mixed here.

    Args:
        model: Put into evaluation mode here; no gradients are computed.
        loader, criterion, device: As in `train_one_epoch`.

    Returns:
        (loss, accuracy, targets, predictions): the means over all images; and (n,) each, whole numbers, in
        the loader's order.
    """
    model.eval()
    total_loss = 0.0
    hits = 0
    targets = []
    predictions = []
    with torch.no_grad():
        for images, labels in loader:
            images = images.to(device)
            labels = labels.to(device)
            logits = model(images)
            loss = criterion(logits, labels)
            total_loss = total_loss + loss.item() * len(labels)
            guesses = logits.argmax(dim=1)
            for target, guess in zip(labels.tolist(), guesses.tolist()):
                targets.append(target)
                predictions.append(guess)
                if target == guess:
                    hits = hits + 1
    return total_loss / len(targets), hits / len(targets), targets, predictions


# %%
class EarlyStopping:
    """Says when validation has not become better for a while, and keeps the best weights.

    Higher values are better: accuracies. A value is an improvement if it is larger than the best so far by
    more than `min_delta`, or the first one that is a number; a tie and NaN are none.

    Args:
        patience: How many steps in a row may be without an improvement; at least 1.
        min_delta: How much more an improvement must be.
    """

    def __init__(self, patience, min_delta=0.0):
        self.patience = patience
        self.min_delta = min_delta
        self.best_value = None  # no best value yet
        self.best_weights = None  # no best weights yet
        self.bad_steps = 0  # steps in a row without an improvement

    def step(self, value, model):
        """Takes a value of validation, and a copy of the model's weights if it is an improvement.

        Returns:
            True at the `patience`-th step in a row without an improvement, else False. (What further steps
            return is free.)
        """
        value = float(value)
        improved = False
        if not math.isnan(value):
            if self.best_value is None:
                improved = True
            elif value > self.best_value + self.min_delta:
                improved = True

        if improved:
            self.best_value = value
            self.bad_steps = 0
            # clone, because state_dict() only points at the weights
            self.best_weights = {}
            for name, tensor in model.state_dict().items():
                self.best_weights[name] = tensor.detach().clone()
        else:
            self.bad_steps = self.bad_steps + 1

        if self.bad_steps >= self.patience:
            return True
        else:
            return False

    def restore(self, model):
        """Puts the best weights back into the model; does nothing where there are none yet."""
        if self.best_weights is not None:
            model.load_state_dict(self.best_weights)


# %%
def fit(model, loaders, epochs, device):
    """Adapts a pretrained model in two stages.

    Stage 1: exactly the head learns. Stage 2: everything learns, at a tenth of stage 1's rate, which half a
    cosine takes down to 0 (or nearly so) over the epochs of stage 2; an `EarlyStopping` of its own watches
    the validation accuracy, and may end the stage. In the end the model has the best weights of stage 2, or
    of both stages, by validation accuracy. Each stage has an optimizer, made when it is known what learns.
    Your accuracy is measured by this function: everything that your training needs is made in here.

    Args:
        model: As `build_model` gives it.
        loaders: A dict with 'train' and 'validation'; images are normalized.
        epochs: A pair: how many passes stage 1 has, and how many stage 2 has at most.
        device: Where to train.

    Returns:
        The history, for `plot_history`: a dict of lists, losses and accuracies of training and validation
        epoch by epoch, and whatever says where stage 2 begins.
    """
    model.to(device)
    epochs_1 = epochs[0]
    epochs_2 = epochs[1]
    history = {
        "train_loss": [],
        "train_accuracy": [],
        "validation_loss": [],
        "validation_accuracy": [],
        "stage": [],  # 1 or 2, for every epoch
    }
    train_criterion = nn.CrossEntropyLoss(label_smoothing=SMOOTHING)
    validation_criterion = nn.CrossEntropyLoss()
    generator = np.random.default_rng(42)

    def mix(images, labels):
        # a coin decides which of the two it is
        if generator.random() < 0.5:
            return mixup(images, labels, MIXUP_ALPHA, generator)
        else:
            return cutmix(images, labels, CUTMIX_ALPHA, generator)

    # ---------------- stage 1: only the head ----------------
    freeze_backbone(model)
    learning = []
    for parameter in model.parameters():
        if parameter.requires_grad:
            learning.append(parameter)
    optimizer = optim.Adam(learning, lr=RATE)
    for epoch in range(epochs_1):
        # nothing is mixed here: a linear head does not overfit in a few epochs
        train_loss, train_accuracy = train_one_epoch(
            model, loaders["train"], optimizer, train_criterion, device
        )
        val_loss, val_accuracy, _, _ = evaluate(model, loaders["validation"], validation_criterion, device)
        history["train_loss"].append(train_loss)
        history["train_accuracy"].append(train_accuracy)
        history["validation_loss"].append(val_loss)
        history["validation_accuracy"].append(val_accuracy)
        history["stage"].append(1)
        print("stage 1, epoch", epoch + 1, "validation accuracy", round(val_accuracy, 4))

    # ---------------- stage 2: everything, slower ----------------
    unfreeze(model)
    learning = []
    for parameter in model.parameters():
        if parameter.requires_grad:
            learning.append(parameter)
    optimizer = optim.AdamW(learning, lr=RATE / 10, weight_decay=0.05)
    scheduler = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=max(1, epochs_2))
    stopper = EarlyStopping(PATIENCE)
    for epoch in range(epochs_2):
        train_loss, train_accuracy = train_one_epoch(
            model, loaders["train"], optimizer, train_criterion, device, mix
        )
        scheduler.step()  # once per epoch
        val_loss, val_accuracy, _, _ = evaluate(model, loaders["validation"], validation_criterion, device)
        history["train_loss"].append(train_loss)
        history["train_accuracy"].append(train_accuracy)
        history["validation_loss"].append(val_loss)
        history["validation_accuracy"].append(val_accuracy)
        history["stage"].append(2)
        print("stage 2, epoch", epoch + 1, "validation accuracy", round(val_accuracy, 4))
        if stopper.step(val_accuracy, model):
            print("stopped early")
            break
    stopper.restore(model)  # the best weights of stage 2
    return history


# %%
def per_class_accuracy(targets, predictions, classes):
    """The accuracy within each class.

    Args:
        targets, predictions: (n,), whole numbers: arrays, tensors or lists.
        classes: How many classes there are.

    Returns:
        An array (classes,): the share of each class's images that are predicted as that class; NaN for a
        class that does not occur in `targets`.
    """
    images_of_class = [0] * classes
    hits_of_class = [0] * classes
    for target, prediction in zip(targets, predictions):
        target = int(target)
        prediction = int(prediction)
        images_of_class[target] = images_of_class[target] + 1
        if target == prediction:
            hits_of_class[target] = hits_of_class[target] + 1

    accuracies = np.zeros(classes)
    for k in range(classes):
        if images_of_class[k] == 0:
            accuracies[k] = float("nan")  # no image, no accuracy
        else:
            accuracies[k] = hits_of_class[k] / images_of_class[k]
    return accuracies


# %% [markdown]
# ## Pictures


# %%
def to_picture(image, mean, std):
    """Undoes the normalization; (height, width, channels), between 0 and 1, for imshow."""
    image = image.detach().cpu()
    picture = torch.zeros_like(image)
    for channel in range(image.shape[0]):
        picture[channel] = image[channel] * std[channel] + mean[channel]
    picture = picture.clamp(0, 1)
    return picture.permute(1, 2, 0).numpy()


# %%
def show_patches(image, patch_size, mean, std):
    """Draws an image as it was, and its patches, each in a place of its own, as they lie in the image.

    Args:
        image: Normalized, (channels, height, width).
        patch_size: Height and width of a patch, in pixels.
        mean, std: Of each channel, by which the image was normalized.
    """
    picture = to_picture(image, mean, std)
    height = picture.shape[0]
    width = picture.shape[1]
    rows = height // patch_size
    columns = width // patch_size

    # figure 1: the image
    plt.figure(figsize=(3, 3))
    plt.imshow(picture)
    plt.title("image")
    plt.axis("off")

    # figure 2: the patches
    plt.figure(figsize=(5, 5))
    for row in range(rows):
        for column in range(columns):
            plt.subplot(rows, columns, row * columns + column + 1)
            top = row * patch_size
            left = column * patch_size
            plt.imshow(picture[top : top + patch_size, left : left + patch_size], vmin=0, vmax=1)
            plt.axis("off")
    plt.suptitle("patches")
    plt.show()


# %%
def show_attention(model, image, mean, std):
    """Draws an image as it was, and beside it where the class token of the last block attends to.

    What is drawn is the mean over the heads of the last block's attention weights (each a softmax over all
    tokens) in the row of the class token, in the columns of the patches: a map (rows, columns) of patches, or
    the same enlarged to the image's size.

    Args:
        model: The given one. Its mode and its weights stay as they are.
        image: Normalized, (channels, height, width).
        mean, std: Of each channel, by which the image was normalized.
    """
    picture = to_picture(image, mean, std)
    attention = model.blocks[-1].attn
    where = next(model.parameters()).device

    # the hook writes the output of the qkv layer into this list
    seen = []

    def remember(module, inputs, output):
        seen.append(output.detach())

    # the mode of every module, to put it back afterwards
    modes = []
    for module in model.modules():
        modes.append(module.training)
    handle = attention.qkv.register_forward_hook(remember)
    model.eval()
    with torch.no_grad():
        model(image.unsqueeze(0).to(where))
    handle.remove()
    for module, mode in zip(model.modules(), modes):
        module.training = mode

    qkv = seen[0][0]  # (tokens, 3 * dim)
    dim = qkv.shape[1] // 3
    head_dim = dim // attention.num_heads
    total = 0
    for number in range(attention.num_heads):
        start = number * head_dim
        query = qkv[0, start : start + head_dim]  # of the class token, which is the first one
        keys = qkv[:, dim + start : dim + start + head_dim]  # of all tokens
        scores = keys @ query / math.sqrt(head_dim)
        total = total + torch.softmax(scores, dim=0)
    mean_weights = total / attention.num_heads

    # without the class token's own column, as a map of patches
    patch_size = model.patch_embed.patch_size
    rows = picture.shape[0] // patch_size
    columns = picture.shape[1] // patch_size
    attention_map = mean_weights[1:].reshape(rows, columns).cpu().numpy()

    plt.figure(figsize=(7, 3))
    plt.subplot(1, 2, 1)
    plt.imshow(picture)
    plt.title("image")
    plt.axis("off")
    plt.subplot(1, 2, 2)
    plt.imshow(attention_map)
    plt.title("attention of the class token")
    plt.axis("off")
    plt.colorbar()
    plt.show()


# %%
def plot_history(history):
    """Draws loss and accuracy of training and validation over the epochs, both stages in one, with a mark
    where stage 2 begins, and axes and curves that say what they are.

    Args:
        history: What `fit` returned.
    """
    epoch_numbers = []
    for i in range(len(history["stage"])):
        epoch_numbers.append(i + 1)
    # how many epochs had stage 1?
    epochs_1 = 0
    for stage in history["stage"]:
        if stage == 1:
            epochs_1 = epochs_1 + 1

    plt.figure(figsize=(11, 4))
    plt.subplot(1, 2, 1)
    plt.plot(epoch_numbers, history["train_loss"], marker="o", label="training loss")
    plt.plot(epoch_numbers, history["validation_loss"], marker="o", label="validation loss")
    plt.axvline(epochs_1 + 0.5, color="gray", linestyle="--", label="stage 2 begins")
    plt.xlabel("epoch")
    plt.ylabel("loss")
    plt.title("Loss")
    plt.legend()

    plt.subplot(1, 2, 2)
    plt.plot(epoch_numbers, history["train_accuracy"], marker="o", label="training accuracy")
    plt.plot(epoch_numbers, history["validation_accuracy"], marker="o", label="validation accuracy")
    plt.axvline(epochs_1 + 0.5, color="gray", linestyle="--", label="stage 2 begins")
    plt.xlabel("epoch")
    plt.ylabel("accuracy")
    plt.title("Accuracy")
    plt.legend()
    plt.tight_layout()
    plt.show()


# %%
def plot_per_class(names, accuracies):
    """Draws a bar for each class, as long as its accuracy, with the class's name; axes say what they are.

    Args:
        names: Of the classes.
        accuracies: (classes,), as `per_class_accuracy` gives them; NaN is drawn as nothing.
    """
    plt.figure(figsize=(8, 4))
    places = []
    heights = []
    for k in range(len(names)):
        places.append(k)
        height = float(accuracies[k])
        if math.isnan(height):
            height = 0.0  # a bar of no height is nothing
        heights.append(height)
    plt.bar(places, heights)
    plt.xticks(places, list(names), rotation=45)
    plt.ylim(0, 1)
    plt.xlabel("class")
    plt.ylabel("accuracy")
    plt.title("Accuracy of each class")
    plt.tight_layout()
    plt.show()


# %%
def plot_confusion_matrix(matrix, class_names):
    """Draws a confusion matrix with its counts, the true classes as rows, the names on both axes.

    Args:
        matrix: (classes, classes).
        class_names: The names, in the order of the labels.
    """
    matrix = np.asarray(matrix)
    number = len(class_names)
    plt.figure(figsize=(8, 7))
    plt.imshow(matrix, cmap="Blues")
    plt.colorbar()
    plt.xticks(range(number), list(class_names), rotation=90)
    plt.yticks(range(number), list(class_names))
    plt.xlabel("predicted class")
    plt.ylabel("true class")
    largest = matrix.max()
    for row in range(number):
        for column in range(number):
            count = int(matrix[row, column])
            # white numbers on dark fields
            if count > largest / 2:
                color = "white"
            else:
                color = "black"
            plt.text(column, row, str(count), ha="center", va="center", color=color)
    plt.title("Confusion matrix")
    plt.tight_layout()
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
    [
        transforms.RandomCrop(32, padding=4),
        transforms.RandomHorizontalFlip(),
        transforms.ToTensor(),
        transforms.Normalize(MEAN, STD),
    ]
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
