"""Assignment 2, test first: red, green, refactor.

For each part the test was written before the code, and stands below it. Tests run while the file runs (all of them
take about a second); they draw their own random numbers, so that the training does not depend on them. Examples in
docstrings are tests, too.
"""

import contextlib
import csv
import doctest
import hashlib
import io
import math
import os
import tempfile
import time
import zipfile

import matplotlib.pyplot as plt
import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Subset, TensorDataset
from torchvision import datasets, transforms

STUDENT_ID = "403995120"

# ======================================================================================================================
# The test bench
# ======================================================================================================================
PASSED = []


def test(function):
    """Runs a test right away, with its own random numbers and without leaving figures behind."""
    numpy_state = np.random.get_state()
    figures = set(plt.get_fignums())
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        function()
    np.random.set_state(numpy_state)
    for number in set(plt.get_fignums()) - figures:
        plt.close(number)
    PASSED.append(function.__name__)
    return function


def examples_hold(function):
    """Runs the examples of a docstring; the first one that fails raises."""
    parsed = doctest.DocTestParser().get_doctest(
        function.__doc__, {**globals(), function.__name__: function}, function.__name__, None, 0
    )
    doctest.DebugRunner(verbose=False, optionflags=doctest.NORMALIZE_WHITESPACE).run(parsed, clear_globs=False)
    PASSED.append(f"examples of {function.__name__}")
    return function


def close(a, b, tolerance=1e-5):
    return np.allclose(torch.as_tensor(a).detach().numpy(), torch.as_tensor(b).detach().numpy(), atol=tolerance, equal_nan=True)


# ======================================================================================================================
# Parts of the Vision Transformer
# ======================================================================================================================
class PatchEmbedding(nn.Module):
    """A look-up table says which pixels belong to which patch; one linear layer does the rest."""

    def __init__(self, image_size, patch_size, in_channels, dim):
        super().__init__()
        assert image_size % patch_size == 0
        pixel = torch.arange(in_channels * image_size**2).view(in_channels, image_size, image_size)
        starts = range(0, image_size, patch_size)
        table = [pixel[:, y : y + patch_size, x : x + patch_size].flatten() for y in starts for x in starts]
        self.register_buffer("table", torch.stack(table), persistent=False)  # (patches, pixels of a patch)
        self.linear = nn.Linear(self.table.shape[1], dim)

    def forward(self, images):
        return self.linear(images.flatten(1)[:, self.table])


@test
def a_patch_sees_its_own_pixels_only_and_patches_go_row_by_row():
    embedding, images = PatchEmbedding(6, 2, 3, 5), torch.randn(2, 3, 6, 6)
    before = embedding(images)
    assert before.shape == (2, 9, 5)
    images[:, :, 2:4, 4:6] += 1  # second row, third column: number 5
    changed = (embedding(images) - before).abs().sum((0, 2)) > 1e-6
    assert changed.nonzero().flatten().tolist() == [5]


@test
def equal_patches_become_equal_tokens():
    tokens = PatchEmbedding(8, 4, 1, 3)(torch.randn(1, 1, 4, 4).repeat(1, 1, 2, 2))
    assert close(tokens, tokens[:, :1].expand(-1, 4, -1))


@examples_hold
def sinusoidal_positions(tokens, dim):
    """sin(pos / 10000^(2i / dim)) in column 2i, the cosine in column 2i + 1.

    >>> sinusoidal_positions(1, 4).tolist()
    [[0.0, 1.0, 0.0, 1.0]]
    >>> [round(x, 4) for x in sinusoidal_positions(3, 4)[2].tolist()] == [
    ...     round(x, 4) for x in (math.sin(2), math.cos(2), math.sin(2 / 100), math.cos(2 / 100))
    ... ]
    True
    >>> sinusoidal_positions(65, 96).shape
    torch.Size([65, 96])
    """
    position = torch.arange(tokens, dtype=torch.float64)[:, None]
    divisor = 10_000 ** (torch.arange(0, dim, 2, dtype=torch.float64) / dim)[None, :]
    table = torch.zeros(tokens, dim, dtype=torch.float64)
    table[:, ::2] = torch.sin(position / divisor)
    table[:, 1::2] = torch.cos(position / divisor)
    return table.float()


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, dim, heads, dropout=0.0):
        super().__init__()
        assert dim % heads == 0, "dim must be a multiple of heads"
        self.heads = heads
        self.to_qk = nn.Linear(dim, 2 * dim)
        self.to_v = nn.Linear(dim, dim)
        self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(dim, dim)

    def by_head(self, x):
        """(batch, tokens, dim) -> (batch, heads, tokens, dim / heads)"""
        return torch.stack(x.chunk(self.heads, dim=2), dim=1)

    def forward(self, x, return_weights=False):
        q, k = map(self.by_head, self.to_qk(x).chunk(2, dim=2))
        weights = F.softmax(torch.matmul(q, k.transpose(2, 3)) / k.size(3) ** 0.5, dim=3)
        per_head = torch.matmul(self.dropout(weights), self.by_head(self.to_v(x)))
        result = self.output(torch.cat(per_head.unbind(1), dim=2))
        if return_weights:
            return result, weights
        return result


@test
def attention_is_the_formula():
    dim, heads, width = 12, 3, 4
    attention, x = MultiHeadSelfAttention(dim, heads), torch.randn(2, 5, dim)
    result, weights = attention(x, return_weights=True)
    q, k, v = attention.to_qk(x)[..., :dim], attention.to_qk(x)[..., dim:], attention.to_v(x)
    expected = torch.zeros(2, 5, dim)
    for b in range(2):
        for h in range(heads):
            own = slice(h * width, (h + 1) * width)
            for i in range(5):
                scores = torch.stack([q[b, i, own] @ k[b, j, own] for j in range(5)]) / math.sqrt(width)
                w = scores.exp() / scores.exp().sum()
                assert close(weights[b, h, i], w)
                expected[b, i, own] = sum(w[j] * v[b, j, own] for j in range(5))
    assert close(result, attention.output(expected))
    assert close(result, attention(x))


@test
def rows_of_the_weights_sum_to_one_even_while_weights_are_dropped():
    attention, x = MultiHeadSelfAttention(8, 2, dropout=0.5).train(), torch.randn(3, 7, 8)
    result, weights = attention(x, return_weights=True)
    assert weights.shape == (3, 2, 7, 7) and close(weights.sum(-1), torch.ones(3, 2, 7))
    assert not close(result, attention(x))


@test
def tokens_have_no_order_for_attention():
    attention, x, order = MultiHeadSelfAttention(8, 4), torch.randn(1, 6, 8), torch.randperm(6)
    assert close(attention(x[:, order]), attention(x)[:, order])


class EncoderBlock(nn.Module):
    def __init__(self, dim, heads, mlp_ratio=4.0, dropout=0.0):
        super().__init__()
        hidden = int(dim * mlp_ratio)
        self.norm_before_attention = nn.LayerNorm(dim)
        self.attention = MultiHeadSelfAttention(dim, heads, dropout)
        self.norm_before_mlp = nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, hidden), nn.GELU(), nn.Linear(hidden, dim))

    def forward(self, x):
        attended = x + self.attention(self.norm_before_attention(x))
        return attended + self.mlp(self.norm_before_mlp(attended))


@test
def a_block_whose_sublayers_give_zero_is_the_identity():
    block, x = EncoderBlock(6, 2, 1.5), torch.randn(2, 3, 6) * 10 + 4
    for last in (block.attention.output, block.mlp[2]):
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)
    assert torch.equal(block(x), x)
    assert block.mlp[0].out_features == 9


@test
def sublayers_get_normalized_tokens():
    block, seen = EncoderBlock(16, 4), []
    for layer in (block.attention, block.mlp):
        layer.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    block(torch.randn(2, 5, 16) * 30 + 7)
    for tokens in seen:
        assert close(tokens.mean(-1), torch.zeros(2, 5)) and close(tokens.var(-1, unbiased=False), torch.ones(2, 5), 1e-3)


class VisionTransformer(nn.Module):
    def __init__(
        self,
        image_size=32,
        patch_size=4,
        in_channels=3,
        num_classes=10,
        dim=192,
        depth=9,
        heads=8,
        mlp_ratio=4.0,
        dropout=0.1,
        positions="learned",
        pool="cls",
    ):
        super().__init__()
        assert positions in ("learned", "sinusoidal"), positions
        assert pool in ("cls", "mean"), pool
        self.patches = PatchEmbedding(image_size, patch_size, in_channels, dim)
        count = len(self.patches.table)
        if pool == "cls":
            self.class_token = nn.Parameter(torch.zeros(dim))
            count += 1
        else:
            self.class_token = None
        if positions == "learned":
            self.positions = nn.Parameter(torch.empty(count, dim))
            nn.init.trunc_normal_(self.positions, std=0.02)
        else:
            self.register_buffer("positions", sinusoidal_positions(count, dim), persistent=False)
        self.dropout = nn.Dropout(dropout)
        self.blocks = nn.ModuleList(EncoderBlock(dim, heads, mlp_ratio, dropout) for _ in range(depth))
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, num_classes)

    def before_last_block(self, images):
        x = self.patches(images)
        if self.class_token is not None:
            x = torch.cat([self.class_token.repeat(len(x), 1, 1), x], dim=1)
        x = self.dropout(x + self.positions)
        for block in self.blocks[:-1]:
            x = block(x)
        return x

    def forward(self, images):
        x = self.norm(self.blocks[-1](self.before_last_block(images)))
        return self.head(x.mean(dim=1) if self.class_token is None else x[:, 0])

    def attention(self, images):
        last = self.blocks[-1]
        return last.attention(last.norm_before_attention(self.before_last_block(images)), return_weights=True)[1]


TINY = dict(image_size=8, patch_size=4, num_classes=3, dim=8, depth=2, heads=2)


@test
def all_kinds_give_scores_and_weights():
    for pool in ("cls", "mean"):
        for positions in ("learned", "sinusoidal"):
            for channels in (1, 3):
                model = VisionTransformer(**TINY, in_channels=channels, pool=pool, positions=positions)
                images, tokens = torch.randn(5, channels, 8, 8), 4 + (pool == "cls")
                assert model(images).shape == (5, 3)
                assert model.attention(images).shape == (5, 2, tokens, tokens)
                assert ("class_token" in dict(model.named_parameters())) == (pool == "cls")
                assert ("positions" in dict(model.named_parameters())) == (positions == "learned")


@test
def it_has_as_many_parameters_as_the_assignment_says():
    laptop = VisionTransformer(dim=96, depth=6, heads=4, mlp_ratio=2.0)
    assert sum(p.numel() for p in laptop.parameters()) == 460_906


@test
def the_weights_are_those_that_forward_uses():
    model, images, used = VisionTransformer(**TINY).eval(), torch.randn(2, 3, 8, 8), []
    drop = model.blocks[-1].attention.dropout  # its input: the weights
    drop.register_forward_pre_hook(lambda _, inputs: used.append(inputs[0]))
    model(images)
    assert close(used[0], model.attention(images))


@test
def each_image_is_classified_by_itself():
    model, images = VisionTransformer(**TINY).eval(), torch.randn(4, 3, 8, 8)
    assert close(model(images)[2:3], model(images[2:3]))


@contextlib.contextmanager
def evaluation_mode(model):
    modes = {module: module.training for module in model.modules()}
    model.eval()
    try:
        yield model
    finally:
        for module, mode in modes.items():
            module.training = mode


@torch.no_grad()
def attention_map(model, image):
    with evaluation_mode(model):
        weights = model.attention(image[None].to(next(model.parameters()).device))
    looks = weights[0].mean(dim=0).cpu()
    tokens = len(looks)
    has_class_token = math.isqrt(tokens) ** 2 != tokens
    per_patch = looks[0, 1:] if has_class_token else looks.mean(dim=0)
    side = math.isqrt(len(per_patch))
    assert side * side == len(per_patch)
    largest = per_patch.max()
    if largest > 0:
        per_patch = per_patch / largest
    height, width = image.shape[-2:]
    fine = per_patch.view(side, 1, side, 1).expand(side, height // side, side, width // side)
    return fine.reshape(height, width)


@test
def the_map_is_the_class_tokens_row():
    for pool in ("cls", "mean"):
        model = VisionTransformer(**TINY, pool=pool, dropout=0.5)
        weights = torch.rand(1, 2, 4 + (pool == "cls"), 4 + (pool == "cls"))
        model.attention = lambda images, weights=weights: weights
        found = attention_map(model, torch.randn(3, 8, 8))
        values = weights[0].mean(0)[0, 1:] if pool == "cls" else weights[0].mean(0).mean(0)
        values = values / values.max()
        assert close(found[::4, ::4].flatten(), values) and close(found[3::4, 3::4].flatten(), values)
        assert found.max() == 1 and model.training


@test
def the_map_does_not_change_modes():
    model = VisionTransformer(**TINY).train()
    model.blocks[0].eval()
    attention_map(model, torch.randn(3, 8, 8))
    assert model.training and not model.blocks[0].training and model.blocks[1].training


# ======================================================================================================================
# ResNet
# ======================================================================================================================
class BasicBlock(nn.Module):
    def __init__(self, in_channels, channels, stride=1):
        super().__init__()
        self.first = nn.Conv2d(in_channels, channels, 3, stride=stride, padding=1, bias=False)
        self.first_norm = nn.BatchNorm2d(channels)
        self.second = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.second_norm = nn.BatchNorm2d(channels)
        if stride != 1 or in_channels != channels:
            self.shortcut = nn.Conv2d(in_channels, channels, 1, stride=stride, bias=False)
            self.shortcut_norm = nn.BatchNorm2d(channels)
        else:
            self.shortcut = self.shortcut_norm = nn.Identity()

    def forward(self, x):
        long_way = self.second_norm(self.second(self.first_norm(self.first(x)).relu()))
        short_way = self.shortcut_norm(self.shortcut(x))
        return (long_way + short_way).relu()


@test
def a_block_has_the_shapes_and_parameters_of_the_paper():
    for i, o, stride, extra in ((4, 4, 1, 0), (4, 4, 2, 4 * 4 + 8), (4, 6, 1, 4 * 6 + 12), (4, 8, 2, 4 * 8 + 16)):
        block = BasicBlock(i, o, stride)
        y = block(torch.randn(2, i, 8, 8))
        assert y.shape == (2, o, 8 // stride, 8 // stride) and y.min() >= 0
        assert sum(p.numel() for p in block.parameters()) == 9 * i * o + 9 * o * o + 4 * o + extra


class ResNet18(nn.Module):
    def __init__(self, num_classes=10, width=64):
        super().__init__()
        self.stem = nn.Conv2d(3, width, 3, padding=1, bias=False)
        self.stem_norm = nn.BatchNorm2d(width)
        self.group1 = nn.Sequential(BasicBlock(width, width), BasicBlock(width, width))
        self.group2 = nn.Sequential(BasicBlock(width, width * 2, 2), BasicBlock(width * 2, width * 2))
        self.group3 = nn.Sequential(BasicBlock(width * 2, width * 4, 2), BasicBlock(width * 4, width * 4))
        self.group4 = nn.Sequential(BasicBlock(width * 4, width * 8, 2), BasicBlock(width * 8, width * 8))
        self.head = nn.Linear(width * 8, num_classes)

    def forward(self, images):
        x = self.stem_norm(self.stem(images)).relu()
        for group in (self.group1, self.group2, self.group3, self.group4):
            x = group(x)
        return self.head(x.mean(dim=3).mean(dim=2))


@test
def the_resnet_is_as_large_as_the_assignment_says():
    assert sum(p.numel() for p in ResNet18(10, 16).parameters()) == 701_466
    assert ResNet18(num_classes=4, width=2)(torch.randn(2, 3, 16, 16)).shape == (2, 4)


def parameter_table(model):
    """One row for each parameter of the model itself, one for each of its parts."""
    own = {name: {name: p} for name, p in model.named_parameters() if "." not in name}
    parts = {}
    for name, p in model.named_parameters():
        if "." in name:
            parts.setdefault(name.split(".")[0], {})[name] = p
    return [(name, sum(p.numel() for p in found.values())) for name, found in {**own, **parts}.items()]


@test
def the_table_adds_up():
    for model in (VisionTransformer(**TINY), ResNet18(3, 2), nn.Linear(3, 4), nn.ReLU()):
        assert sum(n for _, n in parameter_table(model)) == sum(p.numel() for p in model.parameters())


# ======================================================================================================================
# Training
# ======================================================================================================================
@examples_hold
def warmup_cosine(step, warmup_steps, total_steps):
    """What the learning rate is multiplied by.

    >>> [warmup_cosine(step, 4, 8) for step in range(5)]
    [0.0, 0.25, 0.5, 0.75, 1.0]
    >>> round(warmup_cosine(6, 4, 8), 6), warmup_cosine(8, 4, 8), warmup_cosine(1000, 4, 8)
    (0.5, 0.0, 0.0)
    >>> warmup_cosine(0, 0, 10)
    1.0
    >>> warmup_cosine(0, 0, 0)
    0.0
    """
    if step < warmup_steps:
        return step / warmup_steps
    if step >= total_steps:
        return 0.0
    done = (step - warmup_steps) / (total_steps - warmup_steps)
    return (1 + math.cos(math.pi * done)) / 2


def train_epoch(model, loader, criterion, optimizer, scheduler, device):
    model.train()
    loss_of_all, right, images_seen = 0.0, 0, 0
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        optimizer.zero_grad()
        scores = model(images)
        loss = criterion(scores, labels)
        loss.backward()
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        with torch.no_grad():
            loss_of_all += loss.item() * len(images)
            right += (scores.max(dim=1).indices == labels).sum().item()
            images_seen += len(images)
    return loss_of_all / images_seen, right / images_seen


@torch.no_grad()
def evaluate(model, loader, criterion, device):
    model.eval()
    loss_of_all, targets, probabilities = 0.0, [], []
    for images, labels in loader:
        scores = model(images.to(device))
        loss_of_all += criterion(scores, labels.to(device)).item() * len(labels)
        targets.append(labels.cpu())
        probabilities.append(F.softmax(scores, dim=1).cpu())
    targets, probabilities = torch.cat(targets), torch.cat(probabilities)
    predictions = probabilities.max(dim=1).indices
    return {
        "loss": loss_of_all / len(targets),
        "accuracy": (predictions == targets).sum().item() / len(targets),
        "targets": targets,
        "predictions": predictions,
        "probabilities": probabilities,
    }


def toy_loader(n=23, batch=5, classes=3):
    """Images, of which the last batch is smaller."""
    return DataLoader(TensorDataset(torch.randn(n, 3, 8, 8), torch.randint(0, classes, (n,))), batch_size=batch)


@test
def means_are_over_images_not_over_batches():
    model, loader, criterion = nn.Sequential(nn.Flatten(), nn.Linear(192, 3)), toy_loader(), nn.CrossEntropyLoss()
    images, labels = loader.dataset.tensors
    loss = criterion(model(images), labels).item()
    accuracy = (model(images).argmax(1) == labels).float().mean().item()
    found = evaluate(model, loader, criterion, "cpu")
    assert close([found["loss"], found["accuracy"]], [loss, accuracy])
    assert torch.equal(found["targets"], labels) and close(found["probabilities"].sum(1), torch.ones(23))
    still = torch.optim.SGD(model.parameters(), lr=0.0)
    assert close(train_epoch(model, loader, criterion, still, None, "cpu"), [loss, accuracy])


@test
def the_schedule_steps_once_per_batch_and_modes_are_set():
    model, loader = nn.Sequential(nn.Flatten(), nn.Linear(192, 3)).eval(), toy_loader()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (1 + step))
    train_epoch(model, loader, nn.CrossEntropyLoss(), optimizer, schedule, "cpu")
    assert model.training and close(optimizer.param_groups[0]["lr"], 1 / 6)
    evaluate(model, loader, nn.CrossEntropyLoss(), "cpu")
    assert not model.training


class Best:
    """Remembers copies of all tensors of a model at its best epoch: parameters, and statistics of batch norms."""

    def __init__(self, model):
        self.model, self.accuracy, self.copies = model, None, None

    def tensors(self):
        return [*self.model.parameters(), *self.model.buffers()]

    def look(self, accuracy):
        if self.accuracy is None or accuracy > self.accuracy:
            self.accuracy = accuracy
            self.copies = [tensor.detach().clone() for tensor in self.tensors()]

    @torch.no_grad()
    def restore(self):
        for tensor, copy in zip(self.tensors(), self.copies or []):
            tensor.copy_(copy)


@test
def the_first_of_equals_is_restored():
    model = nn.BatchNorm1d(1)
    best = Best(model)
    for value, accuracy in ((1.0, 0.3), (2.0, 0.6), (3.0, 0.6), (4.0, 0.5)):
        nn.init.constant_(model.weight, value)
        model.running_mean.fill_(value)
        best.look(accuracy)
    best.restore()
    assert model.weight.item() == 2 and model.running_mean.item() == 2


def fit(model, loaders, epochs, device):
    model = model.to(device)
    criterion = nn.CrossEntropyLoss()
    if isinstance(model, ResNet18):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)
    else:
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.05)
    batches = len(loaders["train"])
    total = batches * epochs
    warmup = batches if epochs > 5 else total // 10
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: warmup_cosine(step, warmup, total))
    history = {"training loss": [], "training accuracy": [], "validation loss": [], "validation accuracy": []}
    best = Best(model)
    for _ in range(epochs):
        training_loss, training_accuracy = train_epoch(
            model, loaders["train"], criterion, optimizer, scheduler, device
        )
        validation = evaluate(model, loaders["validation"], criterion, device)
        for name, value in (
            ("training loss", training_loss),
            ("training accuracy", training_accuracy),
            ("validation loss", validation["loss"]),
            ("validation accuracy", validation["accuracy"]),
        ):
            history[name].append(value)
        best.look(validation["accuracy"])
    best.restore()
    return history


@test
def after_fit_the_model_is_as_good_as_in_its_best_epoch():
    for model in (VisionTransformer(**TINY), ResNet18(3, 2)):
        loaders = {"train": toy_loader(), "validation": toy_loader(17, 4)}
        history = fit(model, loaders, 4, "cpu")
        assert all(len(values) == 4 for values in history.values())
        again = evaluate(model, loaders["validation"], nn.CrossEntropyLoss(), "cpu")
        assert again["accuracy"] == max(history["validation accuracy"])


# ======================================================================================================================
# Measures
# ======================================================================================================================
@examples_hold
def or_zero(above, below):
    """Quotients; 0 where the divisor is 0.

    >>> or_zero([1, 0, 3], [2, 0, 4]).tolist()
    [0.5, 0.0, 0.75]
    """
    above, below = np.asarray(above, dtype=float), np.asarray(below, dtype=float)
    return np.where(below == 0, 0.0, above / np.where(below == 0, 1.0, below))


@examples_hold
def share_of_pairs(positives, negatives):
    """Of all pairs, those in which the positive has more; ties count one half.

    >>> share_of_pairs(np.array([0.9, 0.5]), np.array([0.5, 0.1]))
    0.875
    >>> share_of_pairs(np.array([]), np.array([0.5]))
    nan
    """
    if len(positives) == 0 or len(negatives) == 0:
        return math.nan
    won = sum(np.count_nonzero(score > negatives) + np.count_nonzero(score == negatives) / 2 for score in positives)
    return float(won / (len(positives) * len(negatives)))


@examples_hold
def mean_of_numbers(values, weights):
    """Weighted mean without what is NaN or weighs nothing.

    >>> mean_of_numbers(np.array([1.0, 3.0, np.nan, 9.0]), np.array([1, 3, 5, 0]))
    2.5
    >>> mean_of_numbers(np.array([np.nan]), np.array([2]))
    nan
    """
    use = [(v, w) for v, w in zip(values, weights) if w > 0 and not math.isnan(v)]
    return float(sum(v * w for v, w in use) / sum(w for _, w in use)) if use else math.nan


def classification_metrics(targets, probabilities):
    """
    >>> found = classification_metrics([0, 0, 1, 2], [[.8, .1, .1], [.4, .6, .0], [.1, .9, .0], [.5, .5, .0]])
    >>> found["confusion"].tolist()
    [[1, 1, 0], [0, 1, 0], [1, 0, 0]]
    >>> found["precision"].tolist(), found["recall"].tolist(), found["support"].tolist()
    ([0.5, 0.5, 0.0], [0.5, 1.0, 0.0], [2, 1, 1])
    >>> found["accuracy"], found["macro_recall"], found["weighted_recall"]
    (0.5, 0.5, 0.5)
    >>> classification_metrics([1, 1], [[.5, .5], [.5, .5]])["macro_roc_auc"]
    nan
    """
    targets = np.asarray(targets).astype(int)
    probabilities = np.asarray(probabilities, dtype=float)
    classes = range(probabilities.shape[1])
    predictions = probabilities.argmax(axis=1)
    confusion = np.zeros((len(classes), len(classes)), dtype=int)
    for true, predicted in zip(targets, predictions):
        confusion[true, predicted] += 1
    right = confusion.diagonal()
    support, predicted = confusion.sum(axis=1), confusion.sum(axis=0)
    measures = {
        "precision": or_zero(right, predicted),
        "recall": or_zero(right, support),
        "f1": or_zero(2 * right, predicted + support),
        "roc_auc": np.array([share_of_pairs(probabilities[targets == c, c], probabilities[targets != c, c]) for c in classes]),
    }
    means = {}
    for name, values in measures.items():
        means[f"macro_{name}"] = mean_of_numbers(values, (support > 0).astype(int))
        means[f"weighted_{name}"] = mean_of_numbers(values, support)
    accuracy = float(or_zero(right.sum(), support.sum()))
    return {"confusion": confusion, **measures, "support": support, "accuracy": accuracy, **means}


examples_hold(classification_metrics)


@test
def measures_agree_with_their_definitions_on_random_answers():
    random = np.random.default_rng(1)
    for _ in range(5):
        n, c = int(random.integers(5, 40)), int(random.integers(2, 6))
        y, p = random.integers(0, c, n), random.random((n, c)).round(1)  # one digit: many ties
        found, guess = classification_metrics(y, p), p.argmax(1)
        for k in range(c):
            tp, fp, fn = (int(np.sum(who)) for who in ((guess == k) & (y == k), (guess == k) & (y != k), (guess != k) & (y == k)))
            assert close(found["precision"][k], tp / (tp + fp) if tp + fp else 0)
            assert close(found["f1"][k], 2 * tp / (2 * tp + fp + fn) if tp + fp + fn else 0)
        assert close(found["weighted_recall"], found["accuracy"])  # always so


def export_metrics(metrics, path):
    def rows(prefix, value):
        if isinstance(value, dict):
            pairs = value.items()
        elif np.ndim(value) == 1:
            pairs = enumerate(value)
        elif np.ndim(value) == 0:
            return [(prefix, np.asarray(value).item())]
        else:
            return []
        return [row for key, inner in pairs for row in rows(f"{prefix}.{key}" if prefix else f"{key}", inner)]

    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["metric", "value"])
        writer.writerows(rows("", metrics))


@test
def names_are_joined_by_dots():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "metrics.csv")
        export_metrics({"vit": {"recall": {"cat": 0.5}}, "recall": np.array([0.0, 0.25]), "m": np.eye(2), "n": 7}, path)
        with open(path, encoding="utf-8", newline="") as file:
            found = list(csv.reader(file))
    assert found == [["metric", "value"], ["vit.recall.cat", "0.5"], ["recall.0", "0.0"], ["recall.1", "0.25"], ["n", "7"]]


# ======================================================================================================================
# Pictures. What can be tested: what is written in them, and where the lines begin and end.
# ======================================================================================================================
def plot_learning_curves(history):
    figure, axes = plt.subplots(2, 1, figsize=(7, 7), sharex=True)
    for quantity, ax in zip(("loss", "accuracy"), axes):
        for part in ("training", "validation"):
            values = history[f"{part} {quantity}"]
            ax.plot(range(1, len(values) + 1), values, marker="o", markersize=3, label=part)
        ax.set_xlabel("epoch")
        ax.set_ylabel(quantity)
        ax.grid(alpha=0.3)
        ax.legend()
    return figure


def plot_confusion_matrix(matrix, class_names):
    matrix = np.asarray(matrix)
    assert matrix.shape == (len(class_names), len(class_names))
    figure, ax = plt.subplots(figsize=(8, 8))
    ax.imshow(matrix, cmap="Oranges")
    for true in range(len(matrix)):
        for predicted in range(len(matrix)):
            ax.text(predicted, true, str(int(matrix[true, predicted])), ha="center", va="center")
    ax.set_xticks(range(len(class_names)), class_names, rotation=45, ha="right")
    ax.set_yticks(range(len(class_names)), class_names)
    ax.set_xlabel("predicted")
    ax.set_ylabel("true")
    figure.tight_layout()
    return figure


@examples_hold
def roc_points(scores, positive):
    """
    >>> roc_points(np.array([0.9, 0.8, 0.8, 0.1]), np.array([True, True, False, False]))
    ([0.0, 0.0, 0.5, 1.0], [0.0, 0.5, 1.0, 1.0])
    """
    x, y = [0.0], [0.0]
    for threshold in np.unique(scores)[::-1]:
        called = scores >= threshold
        x.append(float(called[~positive].mean()))
        y.append(float(called[positive].mean()))
    return x, y


@test
def the_area_below_the_curve_is_the_auc():
    scores, positive = torch.rand(40).numpy().round(1), torch.rand(40).numpy() < 0.4
    x, y = roc_points(scores, positive)
    assert (x[0], y[0], x[-1], y[-1]) == (0, 0, 1, 1)
    assert close(np.trapezoid(y, x), share_of_pairs(scores[positive], scores[~positive]))


def plot_roc(targets, probabilities, class_names):
    targets, probabilities = np.asarray(targets), np.asarray(probabilities)
    figure, ax = plt.subplots(figsize=(7, 7))
    for c, name in enumerate(class_names):
        positive = targets == c
        if positive.any() and (~positive).any():
            ax.plot(*roc_points(probabilities[:, c], positive), label=name)
    ax.plot([0, 1], [0, 1], color="black", linewidth=0.5, linestyle="--")
    ax.set_xlabel("false positive rate")
    ax.set_ylabel("true positive rate")
    ax.legend()
    return figure


def as_it_was(image, mean, std):
    mean, std = (torch.as_tensor(np.asarray(x), dtype=torch.float32)[:, None, None] for x in (mean, std))
    return (image.detach().cpu() * std + mean).clamp(0, 1).permute(1, 2, 0).numpy()


@test
def normalization_is_undone():
    image, mean, std = torch.rand(3, 4, 4), (0.1, 0.2, 0.3), (0.4, 0.5, 0.6)
    assert close(as_it_was(transforms.Normalize(mean, std)(image), mean, std), image.permute(1, 2, 0))


def plot_attention(model, images, labels, class_names, mean, std):
    figure, axes = plt.subplots(len(images), 3, figsize=(6, 2 * len(images)), squeeze=False)
    for row, image, label in zip(axes, images, labels):
        shown, where = as_it_was(image, mean, std), attention_map(model, image)
        row[0].imshow(shown)
        row[0].set_title(class_names[int(label)])
        row[1].imshow(where, cmap="magma", vmin=0, vmax=1)
        row[1].set_title("map")
        row[2].imshow(shown)
        row[2].imshow(where, cmap="magma", vmin=0, vmax=1, alpha=0.5)
        row[2].set_title("overlay")
        for ax in row:
            ax.axis("off")
    figure.tight_layout()
    return figure


@examples_hold
def three_likeliest(probabilities):
    """
    >>> three_likeliest([0.1, 0.2, 0.6, 0.1])
    [(2, 0.6), (1, 0.2), (0, 0.1)]
    >>> three_likeliest([0.3, 0.7])
    [(1, 0.7), (0, 0.3)]
    """
    ranked = sorted(enumerate(probabilities), key=lambda pair: -pair[1])
    return [(c, float(p)) for c, p in ranked[:3]]


def plot_top3(images, labels, probabilities, class_names, mean, std):
    figure, axes = plt.subplots(1, len(images), figsize=(2.5 * len(images), 3.6), squeeze=False)
    for ax, image, label, row in zip(axes[0], images, labels, np.asarray(probabilities)):
        best = three_likeliest(row)
        ax.imshow(as_it_was(image, mean, std))
        ax.axis("off")
        color = "green" if best[0][0] == int(label) else "red"
        lines = [f"true: {class_names[int(label)]}", *(f"{class_names[c]} {p:.2f}" for c, p in best)]
        ax.set_title("\n".join(lines), fontsize=9, color=color)
    figure.tight_layout()
    return figure


@test
def pictures_say_what_they_show():
    def words(figure):
        return " ".join(text.get_text() for text in figure.findobj(plt.Text))

    names = ["ape", "bee", "cow"]
    assert "17" in words(plot_confusion_matrix([[17, 0, 1], [2, 3, 4], [5, 6, 7]], names))
    p = np.array([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8], [0.3, 0.4, 0.3], [0.2, 0.5, 0.3]])
    assert "cow" not in words(plot_roc([0, 1, 1, 0], p, names))  # a class that does not occur has no curve
    model, images = VisionTransformer(**TINY), torch.randn(2, 3, 8, 8)
    assert "bee" in words(plot_attention(model, images, torch.tensor([1, 1]), names, (0, 0, 0), (1, 1, 1)))
    assert "0.70" in words(plot_top3(images, [2, 2], p, names, (0, 0, 0), (1, 1, 1)))
    assert "epoch" in words(plot_learning_curves({f"{a} {b}": [1.0] for a in ("training", "validation") for b in ("loss", "accuracy")}))


print(f"{len(PASSED)} tests passed.")

# ======================================================================================================================
# Images
# ======================================================================================================================
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(1234)
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)

with zipfile.ZipFile("dataset.zip") as archive:
    archive.extractall("data")

to_input = transforms.Compose([transforms.ToTensor(), transforms.Normalize(MEAN, STD)])
augmented = transforms.Compose([transforms.RandomCrop(32, padding=4), transforms.RandomHorizontalFlip(), to_input])
train_images = datasets.ImageFolder("data/train", augmented)
validation_images = datasets.ImageFolder("data/train", to_input)
test_images = datasets.ImageFolder("data/test", to_input)
class_names = test_images.classes


@examples_hold
def fingerprint(path):
    """The same on every machine and in every year, whatever the seed and the order of the files.

    >>> fingerprint("data/train/cat/0001.png") == fingerprint(os.path.join("elsewhere", "cat", "0001.png"))
    True
    """
    name = "/".join(path.replace(os.sep, "/").split("/")[-2:])
    return hashlib.sha256(name.encode()).hexdigest()


# the tenth with the smallest fingerprints validates
order = sorted(range(len(train_images)), key=lambda row: fingerprint(train_images.samples[row][0]))
tenth = max(1, len(order) // 10)
assert not set(order[:tenth]) & set(order[tenth:])
loaders = {
    "train": DataLoader(Subset(train_images, order[tenth:]), batch_size=64, shuffle=True),
    "validation": DataLoader(Subset(validation_images, order[:tenth]), batch_size=256),
}
test_loader = DataLoader(test_images, batch_size=256)
first = Subset(validation_images, order[:tenth])[0][0]
assert torch.equal(first, Subset(validation_images, order[:tenth])[0][0]), "validation images must not be augmented"

# ======================================================================================================================
# Both models
# ======================================================================================================================
VIT_EPOCHS = RESNET_EPOCHS = 15

start = time.time()
vit = VisionTransformer(dim=96, depth=6, heads=4, mlp_ratio=2.0, dropout=0.0, num_classes=len(class_names))
vit_history = fit(vit, loaders, VIT_EPOCHS, device)
torch.save(vit.state_dict(), f"{STUDENT_ID}_CIFAR10_vit.pth")
print(f"The ViT took {time.time() - start:.0f} s.")

start = time.time()
resnet = ResNet18(num_classes=len(class_names), width=16)
resnet_history = fit(resnet, loaders, RESNET_EPOCHS, device)
torch.save(resnet.state_dict(), f"{STUDENT_ID}_CIFAR10_resnet.pth")
print(f"The ResNet took {time.time() - start:.0f} s.")

criterion = nn.CrossEntropyLoss()
measures = {}
for name, model, history in (("vit", vit, vit_history), ("resnet", resnet, resnet_history)):
    found = evaluate(model, test_loader, criterion, device)
    measures[name] = classification_metrics(found["targets"], found["probabilities"])
    assert math.isclose(measures[name]["accuracy"], found["accuracy"])
    print(name, f"{found['accuracy']:.4f}", parameter_table(model))
    plot_learning_curves(history)
    plot_confusion_matrix(measures[name]["confusion"], class_names)
    plot_roc(found["targets"], found["probabilities"], class_names)
export_metrics(measures, f"{STUDENT_ID}_metrics.csv")

images, labels = next(iter(test_loader))
images, labels = images[:6], labels[:6]
plot_attention(vit, images, labels, class_names, MEAN, STD)
with evaluation_mode(vit), torch.no_grad():
    plot_top3(images, labels, vit(images.to(device)).softmax(dim=1).cpu(), class_names, MEAN, STD)

# ======================================================================================================================
# Study
# ======================================================================================================================
RUN_STUDY = True
COLUMNS = [
    "patch_size", "dim", "depth", "heads", "mlp_ratio", "positions", "epochs", "seed", "parameters",
    "validation_accuracy",
]  # fmt: skip
BASE = {
    "patch_size": 8, "dim": 64, "depth": 2, "heads": 4, "mlp_ratio": 2.0, "positions": "learned", "epochs": 5,
}  # fmt: skip
SETTINGS = [(BASE, 1), (BASE, 2), (BASE, 3)]
SETTINGS += [({**BASE, key: value}, 1) for key, value in [
    ("patch_size", 4), ("dim", 32), ("depth", 5), ("heads", 1), ("mlp_ratio", 1.0), ("positions", "sinusoidal"),
]]  # fmt: skip


@test
def each_row_differs_from_the_base_in_one_value():
    changes = [[key for key in BASE if setting[key] != BASE[key]] for setting, _ in SETTINGS]
    assert [len(change) for change in changes] == [0, 0, 0, 1, 1, 1, 1, 1, 1]


def trained_row(setting, seed):
    torch.manual_seed(seed)
    sizes = {key: value for key, value in setting.items() if key != "epochs"}
    model = VisionTransformer(**sizes, dropout=0.0, num_classes=len(class_names))
    fit(model, loaders, setting["epochs"], device)
    accuracy = evaluate(model, loaders["validation"], criterion, device)["accuracy"]
    parameters = sum(p.numel() for p in model.parameters())
    return {**setting, "seed": seed, "parameters": parameters, "validation_accuracy": round(accuracy, 4)}


if RUN_STUDY:
    text = io.StringIO(newline="")
    table = csv.DictWriter(text, COLUMNS)
    table.writeheader()
    table.writerows(trained_row(setting, seed) for setting, seed in SETTINGS)
    with open(f"{STUDENT_ID}_study.csv", "w", newline="", encoding="utf-8") as file:
        file.write(text.getvalue())
