"""Vision Transformer versus ResNet-18 on CIFAR-10.

This module contains the complete solution of Assignment 2. It is organised as follows:

1.  Constants, enumerations and logging configuration.
2.  Data loading and augmentation.
3.  The Vision Transformer and its building blocks.
4.  The ResNet-18 used as a convolutional baseline.
5.  Training utilities (schedule, training loop, evaluation loop, ``fit``).
6.  Classification metrics implemented from scratch with NumPy.
7.  Visualisation helpers.
8.  The experiment itself: training, comparison and ablation study.

All public functions validate their inputs and raise ``TypeError`` or ``ValueError`` with a
descriptive message whenever an argument is not acceptable.
"""

from __future__ import annotations

import copy
import csv
import logging
import math
import numbers
import os
import time
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, Final, Optional, Union

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F
from matplotlib.figure import Figure
from torch import Tensor, nn, optim
from torch.utils.data import DataLoader, Subset
from torchvision import datasets, transforms

# --------------------------------------------------------------------------------------
# 1. Constants, enumerations and logging
# --------------------------------------------------------------------------------------

logging.basicConfig(
    level=logging.INFO,
    format="%(asctime)s | %(levelname)-7s | %(name)s | %(message)s",
    datefmt="%H:%M:%S",
)
logger = logging.getLogger("cifar10_homework")


class PositionKind(str, Enum):
    """Supported kinds of positional encodings."""

    LEARNED = "learned"
    SINUSOIDAL = "sinusoidal"


class PoolKind(str, Enum):
    """Supported strategies for aggregating the tokens into one vector."""

    CLS = "cls"
    MEAN = "mean"


class Split(str, Enum):
    """Names of the data loaders that :func:`fit` expects."""

    TRAIN = "train"
    VALIDATION = "validation"


class Hyper(float, Enum):
    """Optimisation hyper-parameters, collected in a single place."""

    VIT_LEARNING_RATE = 1e-3
    VIT_WEIGHT_DECAY = 0.05
    RESNET_LEARNING_RATE = 2e-3
    RESNET_WEIGHT_DECAY = 5e-4
    WARMUP_FRACTION = 0.1
    MAX_GRADIENT_NORM = 1.0


class HistoryKey(str, Enum):
    """Keys of the history dictionary returned by :func:`fit`."""

    TRAIN_LOSS = "train_loss"
    TRAIN_ACCURACY = "train_accuracy"
    VALIDATION_LOSS = "validation_loss"
    VALIDATION_ACCURACY = "validation_accuracy"


STUDENT_ID: Final[str] = "400102901"
SEED: Final[int] = 42
MEAN: Final[tuple[float, float, float]] = (0.4914, 0.4822, 0.4465)
STD: Final[tuple[float, float, float]] = (0.2470, 0.2435, 0.2616)
BATCH_SIZE: Final[int] = 64
EVALUATION_BATCH_SIZE: Final[int] = 256
POSITION_BASE: Final[float] = 10000.0
TOP_K: Final[int] = 3

History = dict[str, list[float]]
ArrayLike = Union[np.ndarray, Tensor, Sequence[Any]]

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(SEED)


# --------------------------------------------------------------------------------------
# Private validation helpers
# --------------------------------------------------------------------------------------


def _require_positive_int(value: Any, name: str) -> int:
    """Ensure that ``value`` is a positive integer.

    Args:
        value: The value to be checked.
        name: The name of the argument, used in the error message.

    Returns:
        The value as a built-in ``int``.

    Raises:
        TypeError: If ``value`` is not an integer.
        ValueError: If ``value`` is smaller than one.
    """
    if not isinstance(value, numbers.Integral):
        raise TypeError(f"`{name}` must be an integer, got {type(value).__name__}.")
    if value < 1:
        raise ValueError(f"`{name}` must be at least 1, got {value}.")
    return int(value)


def _require_probability(value: Any, name: str) -> float:
    """Ensure that ``value`` is a real number between 0 and 1.

    Args:
        value: The value to be checked.
        name: The name of the argument, used in the error message.

    Returns:
        The value as a built-in ``float``.

    Raises:
        TypeError: If ``value`` is not a real number.
        ValueError: If ``value`` is outside the permitted interval.
    """
    if not isinstance(value, numbers.Real):
        raise TypeError(f"`{name}` must be a real number, got {type(value).__name__}.")
    if not 0.0 <= value <= 1.0:
        raise ValueError(f"`{name}` must lie between 0 and 1, got {value}.")
    return float(value)


def _require_module(model: Any) -> nn.Module:
    """Ensure that ``model`` is a PyTorch module.

    Args:
        model: The object to be checked.

    Returns:
        The same object.

    Raises:
        TypeError: If ``model`` is not an ``nn.Module``.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"`model` must be an nn.Module, got {type(model).__name__}.")
    return model


def _require_tensor(value: Any, name: str, dimensions: int) -> Tensor:
    """Ensure that ``value`` is a tensor with the given number of dimensions.

    Args:
        value: The object to be checked.
        name: The name of the argument, used in the error message.
        dimensions: The expected number of dimensions.

    Returns:
        The same tensor.

    Raises:
        TypeError: If ``value`` is not a tensor.
        ValueError: If the number of dimensions is wrong.
    """
    if not isinstance(value, Tensor):
        raise TypeError(f"`{name}` must be a torch.Tensor, got {type(value).__name__}.")
    if value.dim() != dimensions:
        raise ValueError(
            f"`{name}` must have {dimensions} dimensions, got shape {tuple(value.shape)}."
        )
    return value


def _to_numpy(values: ArrayLike) -> np.ndarray:
    """Convert tensors, arrays and sequences into a NumPy array on the CPU.

    Args:
        values: A tensor on any device, an array or a (nested) sequence.

    Returns:
        A NumPy array with the same content.
    """
    if isinstance(values, Tensor):
        return values.detach().cpu().numpy()
    return np.asarray(values)


# --------------------------------------------------------------------------------------
# 2. Data
# --------------------------------------------------------------------------------------

with zipfile.ZipFile("dataset.zip") as archive:
    archive.extractall("data")

plain_transform = transforms.Compose(
    [transforms.ToTensor(), transforms.Normalize(MEAN, STD)]
)
train_transform = transforms.Compose(
    [
        transforms.RandomCrop(32, padding=4),
        transforms.RandomHorizontalFlip(),
        transforms.ToTensor(),
        transforms.Normalize(MEAN, STD),
    ]
)
# Two separate dataset objects, so that the validation images are never augmented.
augmented_images = datasets.ImageFolder("data/train", transform=train_transform)
plain_images = datasets.ImageFolder("data/train", transform=plain_transform)
test_images = datasets.ImageFolder("data/test", transform=plain_transform)
class_names = test_images.classes

order = torch.randperm(
    len(plain_images), generator=torch.Generator().manual_seed(SEED)
).tolist()
held = len(order) // 10
loaders = {
    Split.TRAIN.value: DataLoader(
        Subset(augmented_images, order[held:]), batch_size=BATCH_SIZE, shuffle=True
    ),
    Split.VALIDATION.value: DataLoader(
        Subset(plain_images, order[:held]), batch_size=EVALUATION_BATCH_SIZE
    ),
}
test_loader = DataLoader(test_images, batch_size=EVALUATION_BATCH_SIZE)
logger.info(
    "Images: %d training, %d validation, %d test",
    len(order) - held,
    held,
    len(test_images),
)


# --------------------------------------------------------------------------------------
# 3. Vision Transformer
# --------------------------------------------------------------------------------------


class PatchEmbedding(nn.Module):
    """Split an image into non-overlapping patches and embed each patch linearly.

    The embedding is realised by a strided convolution whose kernel size equals its
    stride. This is mathematically equivalent to flattening each patch and multiplying it
    by one shared weight matrix, but it is considerably more convenient.

    Attributes:
        image_size: Height and width of the expected images.
        patch_size: Height and width of a patch.
        num_patches: The number of tokens that are produced.
        projection: The strided convolution.
    """

    def __init__(
        self, image_size: int, patch_size: int, in_channels: int, dim: int
    ) -> None:
        """Initialise the patch embedding.

        Args:
            image_size: Height and width of the images in pixels.
            patch_size: Height and width of a patch in pixels; must divide ``image_size``.
            in_channels: The number of channels of the images.
            dim: The width of the tokens.

        Raises:
            TypeError: If an argument is not an integer.
            ValueError: If an argument is not positive, or if ``patch_size`` does not
                divide ``image_size``.
        """
        super().__init__()
        self.image_size = _require_positive_int(image_size, "image_size")
        self.patch_size = _require_positive_int(patch_size, "patch_size")
        self.in_channels = _require_positive_int(in_channels, "in_channels")
        self.dim = _require_positive_int(dim, "dim")
        if self.image_size % self.patch_size != 0:
            raise ValueError(
                f"`patch_size` ({patch_size}) must divide `image_size` ({image_size})."
            )
        self.num_patches = (self.image_size // self.patch_size) ** 2
        self.projection = nn.Conv2d(
            self.in_channels,
            self.dim,
            kernel_size=self.patch_size,
            stride=self.patch_size,
        )

    def forward(self, images: Tensor) -> Tensor:
        """Embed a batch of images.

        Args:
            images: Images of shape (batch, in_channels, image_size, image_size).

        Returns:
            Tokens of shape (batch, num_patches, dim) in row-major order.

        Raises:
            TypeError: If ``images`` is not a tensor.
            ValueError: If the shape does not match the configuration.
        """
        _require_tensor(images, "images", 4)
        expected = (self.in_channels, self.image_size, self.image_size)
        if tuple(images.shape[1:]) != expected:
            raise ValueError(
                f"Expected images of shape (batch, {expected[0]}, {expected[1]}, "
                f"{expected[2]}), got {tuple(images.shape)}."
            )
        grid = self.projection(images)  # (batch, dim, rows, columns)
        return grid.flatten(start_dim=2).transpose(1, 2)


def sinusoidal_positions(tokens: int, dim: int) -> Tensor:
    """Compute the sinusoidal positional encodings of Vaswani et al. (2017).

    The encoding of position ``pos`` is defined by::

        table[pos, 2i]     = sin(pos / 10000^(2i / dim))
        table[pos, 2i + 1] = cos(pos / 10000^(2i / dim))

    Args:
        tokens: The number of positions.
        dim: The width of a token; must be even.

    Returns:
        A tensor of shape (tokens, dim).

    Raises:
        TypeError: If an argument is not an integer.
        ValueError: If an argument is not positive or ``dim`` is odd.
    """
    tokens = _require_positive_int(tokens, "tokens")
    dim = _require_positive_int(dim, "dim")
    if dim % 2 != 0:
        raise ValueError(f"`dim` must be even, got {dim}.")

    positions = torch.arange(tokens, dtype=torch.float64).unsqueeze(1)
    exponents = torch.arange(0, dim, 2, dtype=torch.float64) / dim
    angles = positions / torch.pow(
        torch.tensor(POSITION_BASE, dtype=torch.float64), exponents
    )
    table = torch.zeros(tokens, dim, dtype=torch.float64)
    table[:, 0::2] = torch.sin(angles)
    table[:, 1::2] = torch.cos(angles)
    return table.to(torch.get_default_dtype())


class MultiHeadSelfAttention(nn.Module):
    """Multi-head scaled dot-product self-attention.

    Attributes:
        heads: The number of attention heads.
        head_dim: The number of features of each head.
        scale: The factor 1 / sqrt(head_dim).
    """

    def __init__(self, dim: int, heads: int, dropout: float = 0.0) -> None:
        """Initialise the attention layer.

        Args:
            dim: The width of a token; must be a multiple of ``heads``.
            heads: The number of heads.
            dropout: The probability of dropping an attention weight during training.

        Raises:
            TypeError: If an argument has the wrong type.
            ValueError: If ``dim`` is not divisible by ``heads`` or a value is out of range.
        """
        super().__init__()
        self.dim = _require_positive_int(dim, "dim")
        self.heads = _require_positive_int(heads, "heads")
        dropout = _require_probability(dropout, "dropout")
        if self.dim % self.heads != 0:
            raise ValueError(f"`dim` ({dim}) must be a multiple of `heads` ({heads}).")
        self.head_dim = self.dim // self.heads
        self.scale = self.head_dim**-0.5

        self.query = nn.Linear(self.dim, self.dim)
        self.key = nn.Linear(self.dim, self.dim)
        self.value = nn.Linear(self.dim, self.dim)
        self.output = nn.Linear(self.dim, self.dim)
        self.attention_dropout = nn.Dropout(dropout)

    def _split_heads(self, x: Tensor) -> Tensor:
        """Reshape (batch, tokens, dim) into (batch, heads, tokens, head_dim)."""
        batch, tokens, _ = x.shape
        return x.view(batch, tokens, self.heads, self.head_dim).transpose(1, 2)

    def _merge_heads(self, x: Tensor) -> Tensor:
        """Reshape (batch, heads, tokens, head_dim) into (batch, tokens, dim)."""
        batch, _, tokens, _ = x.shape
        return x.transpose(1, 2).reshape(batch, tokens, self.dim)

    def forward(
        self, x: Tensor, return_weights: bool = False
    ) -> Union[Tensor, tuple[Tensor, Tensor]]:
        """Apply self-attention.

        Args:
            x: Tokens of shape (batch, tokens, dim).
            return_weights: Whether to return the attention weights as well.

        Returns:
            The attended tokens of shape (batch, tokens, dim). If ``return_weights`` is
            true, a tuple of these and the weights of shape (batch, heads, tokens,
            tokens), taken after the softmax and before dropout.

        Raises:
            TypeError: If ``x`` is not a tensor.
            ValueError: If the shape of ``x`` is not (batch, tokens, dim).
        """
        _require_tensor(x, "x", 3)
        if x.shape[-1] != self.dim:
            raise ValueError(f"Expected tokens of width {self.dim}, got {x.shape[-1]}.")

        query = self._split_heads(self.query(x))
        key = self._split_heads(self.key(x))
        value = self._split_heads(self.value(x))

        scores = torch.matmul(query, key.transpose(-2, -1)) * self.scale
        weights = torch.softmax(scores, dim=-1)
        context = torch.matmul(self.attention_dropout(weights), value)
        result = self.output(self._merge_heads(context))

        if return_weights:
            return result, weights
        return result


class EncoderBlock(nn.Module):
    """A pre-norm Transformer encoder block.

    The block computes::

        x = x + attention(norm1(x))
        x = x + mlp(norm2(x))
    """

    def __init__(
        self, dim: int, heads: int, mlp_ratio: float = 4.0, dropout: float = 0.0
    ) -> None:
        """Initialise the block.

        Args:
            dim: The width of a token.
            heads: The number of attention heads.
            mlp_ratio: The hidden width of the MLP in multiples of ``dim``.
            dropout: The dropout probability in the attention and in the MLP.

        Raises:
            TypeError: If ``mlp_ratio`` is not a real number.
            ValueError: If ``mlp_ratio`` is not positive.
        """
        super().__init__()
        dim = _require_positive_int(dim, "dim")
        dropout = _require_probability(dropout, "dropout")
        if not isinstance(mlp_ratio, numbers.Real):
            raise TypeError(
                f"`mlp_ratio` must be a real number, got {type(mlp_ratio).__name__}."
            )
        if mlp_ratio <= 0:
            raise ValueError(f"`mlp_ratio` must be positive, got {mlp_ratio}.")
        hidden_dim = int(dim * mlp_ratio)

        self.attention_norm = nn.LayerNorm(dim)
        self.attention = MultiHeadSelfAttention(dim, heads, dropout)
        self.mlp_norm = nn.LayerNorm(dim)
        self.mlp = nn.Sequential(
            nn.Linear(dim, hidden_dim),
            nn.GELU(),
            nn.Dropout(dropout),
            nn.Linear(hidden_dim, dim),
            nn.Dropout(dropout),
        )

    def forward(self, x: Tensor) -> Tensor:
        """Apply both residual sub-layers.

        Args:
            x: Tokens of shape (batch, tokens, dim).

        Returns:
            Tokens of shape (batch, tokens, dim).
        """
        x = x + self.attention(self.attention_norm(x))
        x = x + self.mlp(self.mlp_norm(x))
        return x

    def attention_weights(self, x: Tensor) -> Tensor:
        """Return the attention weights this block would use for its input ``x``.

        Args:
            x: Tokens of shape (batch, tokens, dim), as given to :meth:`forward`.

        Returns:
            Weights of shape (batch, heads, tokens, tokens).
        """
        _, weights = self.attention(self.attention_norm(x), return_weights=True)
        return weights


class VisionTransformer(nn.Module):
    """A Vision Transformer for image classification (Dosovitskiy et al., 2021)."""

    def __init__(
        self,
        image_size: int = 32,
        patch_size: int = 4,
        in_channels: int = 3,
        num_classes: int = 10,
        dim: int = 192,
        depth: int = 9,
        heads: int = 8,
        mlp_ratio: float = 4.0,
        dropout: float = 0.1,
        positions: str = "learned",
        pool: str = "cls",
    ) -> None:
        """Initialise the model.

        Args:
            image_size: Height and width of the images.
            patch_size: Height and width of the patches.
            in_channels: The number of channels of the images.
            num_classes: The number of classes.
            dim: The width of a token.
            depth: The number of encoder blocks.
            heads: The number of attention heads in each block.
            mlp_ratio: The hidden width of the MLPs in multiples of ``dim``.
            dropout: The dropout probability.
            positions: Either ``"learned"`` or ``"sinusoidal"``.
            pool: Either ``"cls"`` or ``"mean"``.

        Raises:
            ValueError: If ``positions`` or ``pool`` is not one of the known values.
        """
        super().__init__()
        num_classes = _require_positive_int(num_classes, "num_classes")
        depth = _require_positive_int(depth, "depth")
        try:
            self.position_kind = PositionKind(positions)
        except ValueError as error:
            options = [kind.value for kind in PositionKind]
            raise ValueError(
                f"`positions` must be one of {options}, got {positions!r}."
            ) from error
        try:
            self.pool_kind = PoolKind(pool)
        except ValueError as error:
            options = [kind.value for kind in PoolKind]
            raise ValueError(f"`pool` must be one of {options}, got {pool!r}.") from error

        self.patch_embedding = PatchEmbedding(image_size, patch_size, in_channels, dim)
        num_tokens = self.patch_embedding.num_patches

        self.class_token: Optional[nn.Parameter]
        if self.pool_kind is PoolKind.CLS:
            self.class_token = nn.Parameter(torch.empty(1, 1, dim))
            nn.init.trunc_normal_(self.class_token, std=0.02)
            num_tokens += 1
        else:
            self.class_token = None

        if self.position_kind is PositionKind.LEARNED:
            self.position_table = nn.Parameter(torch.empty(1, num_tokens, dim))
            nn.init.trunc_normal_(self.position_table, std=0.02)
        else:
            self.register_buffer(
                "position_table", sinusoidal_positions(num_tokens, dim).unsqueeze(0)
            )

        self.embedding_dropout = nn.Dropout(_require_probability(dropout, "dropout"))
        self.blocks = nn.ModuleList(
            EncoderBlock(dim=dim, heads=heads, mlp_ratio=mlp_ratio, dropout=dropout)
            for _ in range(depth)
        )
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, num_classes)

    def _embed(self, images: Tensor) -> Tensor:
        """Turn images into the tokens that enter the first block."""
        tokens = self.patch_embedding(images)
        if self.class_token is not None:
            class_tokens = self.class_token.expand(tokens.shape[0], -1, -1)
            tokens = torch.cat((class_tokens, tokens), dim=1)
        return self.embedding_dropout(tokens + self.position_table)

    def _pool(self, tokens: Tensor) -> Tensor:
        """Aggregate tokens of shape (batch, tokens, dim) into (batch, dim)."""
        if self.pool_kind is PoolKind.CLS:
            return tokens[:, 0]
        return tokens.mean(dim=1)

    def forward(self, images: Tensor) -> Tensor:
        """Compute the logits of a batch of images.

        Args:
            images: Images of shape (batch, in_channels, image_size, image_size).

        Returns:
            Logits of shape (batch, num_classes).
        """
        tokens = self._embed(images)
        for block in self.blocks:
            tokens = block(tokens)
        return self.head(self._pool(self.norm(tokens)))

    def attention(self, images: Tensor) -> Tensor:
        """Compute the attention weights of the last block.

        Args:
            images: Images of shape (batch, in_channels, image_size, image_size).

        Returns:
            Weights of shape (batch, heads, tokens, tokens).
        """
        tokens = self._embed(images)
        for block in self.blocks[:-1]:
            tokens = block(tokens)
        return self.blocks[-1].attention_weights(tokens)


def _device_of(model: nn.Module) -> torch.device:
    """Return the device of the first parameter of a model (the CPU if there is none)."""
    parameter = next(iter(model.parameters()), None)
    return torch.device("cpu") if parameter is None else parameter.device


def attention_map(model: nn.Module, image: Tensor) -> Tensor:
    """Visualise which pixels the last block attends to.

    Args:
        model: A Vision Transformer. Its training mode is restored afterwards.
        image: One image of shape (channels, height, width).

    Returns:
        A tensor of shape (height, width) on the CPU, whose maximum is 1.

    Raises:
        TypeError: If the arguments have unexpected types.
        ValueError: If the image does not have three dimensions, or if the tokens do not
            form a square grid.
    """
    _require_module(model)
    _require_tensor(image, "image", 3)
    if not callable(getattr(model, "attention", None)):
        raise TypeError("`model` must offer a method `attention(images)`.")

    was_training = model.training
    model.eval()
    try:
        with torch.no_grad():
            weights = model.attention(image.unsqueeze(0).to(_device_of(model)))
    finally:
        model.train(was_training)

    mean_weights = weights[0].mean(dim=0).detach().cpu()
    num_tokens = mean_weights.shape[0]
    if math.isqrt(num_tokens) ** 2 == num_tokens:
        patch_weights = mean_weights.mean(dim=0)
    else:
        patch_weights = mean_weights[0, 1:]

    side = math.isqrt(patch_weights.numel())
    if side * side != patch_weights.numel():
        raise ValueError(f"{patch_weights.numel()} patches do not form a square grid.")
    maximum = patch_weights.max()
    if maximum > 0:
        patch_weights = patch_weights / maximum

    height, width = image.shape[-2:]
    grid = patch_weights.reshape(1, 1, side, side)
    return F.interpolate(grid, size=(height, width), mode="nearest")[0, 0]


# --------------------------------------------------------------------------------------
# 4. ResNet-18
# --------------------------------------------------------------------------------------


class BasicBlock(nn.Module):
    """The basic residual block of He et al. (2016)."""

    def __init__(self, in_channels: int, channels: int, stride: int = 1) -> None:
        """Initialise the block.

        Args:
            in_channels: The number of input channels.
            channels: The number of output channels.
            stride: The stride of the first convolution.

        Raises:
            TypeError: If an argument is not an integer.
            ValueError: If an argument is not positive.
        """
        super().__init__()
        in_channels = _require_positive_int(in_channels, "in_channels")
        channels = _require_positive_int(channels, "channels")
        stride = _require_positive_int(stride, "stride")

        self.conv1 = nn.Conv2d(
            in_channels, channels, kernel_size=3, stride=stride, padding=1, bias=False
        )
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(
            channels, channels, kernel_size=3, stride=1, padding=1, bias=False
        )
        self.bn2 = nn.BatchNorm2d(channels)
        self.relu = nn.ReLU()

        self.shortcut: nn.Module
        if stride != 1 or in_channels != channels:
            self.shortcut = nn.Sequential(
                nn.Conv2d(
                    in_channels, channels, kernel_size=1, stride=stride, bias=False
                ),
                nn.BatchNorm2d(channels),
            )
        else:
            self.shortcut = nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        """Apply the residual and the shortcut path.

        Args:
            x: Features of shape (batch, in_channels, height, width).

        Returns:
            Features of shape (batch, channels, height / stride, width / stride).
        """
        residual = self.relu(self.bn1(self.conv1(x)))
        residual = self.bn2(self.conv2(residual))
        return self.relu(residual + self.shortcut(x))


class ResNet18(nn.Module):
    """ResNet-18 with the stem for small images (3 x 3 convolution, no max-pooling)."""

    _GROUP_STRIDES: Final = (1, 2, 2, 2)
    _BLOCKS_PER_GROUP: Final = 2

    def __init__(self, num_classes: int = 10, width: int = 64) -> None:
        """Initialise the network.

        Args:
            num_classes: The number of classes.
            width: The number of channels of the stem and of the first group.

        Raises:
            TypeError: If an argument is not an integer.
            ValueError: If an argument is not positive.
        """
        super().__init__()
        num_classes = _require_positive_int(num_classes, "num_classes")
        width = _require_positive_int(width, "width")

        self.stem = nn.Sequential(
            nn.Conv2d(3, width, kernel_size=3, padding=1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
        )
        groups: list[nn.Module] = []
        in_channels = width
        for index, stride in enumerate(self._GROUP_STRIDES):
            channels = width * 2**index
            groups.append(self._make_group(in_channels, channels, stride))
            in_channels = channels
        self.groups = nn.Sequential(*groups)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Linear(in_channels, num_classes)

    def _make_group(self, in_channels: int, channels: int, stride: int) -> nn.Module:
        """Create one group of basic blocks, the first of which may be strided."""
        blocks: list[nn.Module] = [BasicBlock(in_channels, channels, stride)]
        for _ in range(self._BLOCKS_PER_GROUP - 1):
            blocks.append(BasicBlock(channels, channels, 1))
        return nn.Sequential(*blocks)

    def forward(self, images: Tensor) -> Tensor:
        """Compute the logits of a batch of images.

        Args:
            images: Images of shape (batch, 3, height, width).

        Returns:
            Logits of shape (batch, num_classes).
        """
        _require_tensor(images, "images", 4)
        features = self.groups(self.stem(images))
        return self.classifier(torch.flatten(self.pool(features), start_dim=1))


def parameter_table(model: nn.Module) -> list[tuple[str, int]]:
    """Count the parameters of each top-level part of a model.

    Parameters that belong directly to the model (for instance a class token) appear under
    their own name. Frozen parameters are counted as well.

    Args:
        model: Any PyTorch module.

    Returns:
        A list of (name, number of parameters) in the order of registration.

    Raises:
        TypeError: If ``model`` is not an ``nn.Module``.
    """
    _require_module(model)
    counts: dict[str, int] = {}
    for name, parameter in model.named_parameters():
        part = name.split(".", maxsplit=1)[0]
        counts[part] = counts.get(part, 0) + parameter.numel()
    return list(counts.items())


# --------------------------------------------------------------------------------------
# 5. Training
# --------------------------------------------------------------------------------------


def warmup_cosine(step: int, warmup_steps: int, total_steps: int) -> float:
    """Compute the learning rate factor of a linear warm-up followed by a cosine decay.

    Args:
        step: The current step, counted from zero.
        warmup_steps: The number of warm-up steps; zero disables the warm-up.
        total_steps: The total number of steps.

    Returns:
        A factor between 0 and 1.

    Raises:
        ValueError: If an argument is negative.
    """
    if step < 0 or warmup_steps < 0 or total_steps < 0:
        raise ValueError(
            "`step`, `warmup_steps` and `total_steps` must not be negative, got "
            f"{step}, {warmup_steps} and {total_steps}."
        )
    if step >= total_steps:
        return 0.0
    if step < warmup_steps:
        return float(step / warmup_steps)
    progress = (step - warmup_steps) / (total_steps - warmup_steps)
    return 0.5 * (1.0 + math.cos(math.pi * progress))


def train_epoch(
    model: nn.Module,
    loader: Iterable[tuple[Tensor, Tensor]],
    criterion: nn.Module,
    optimizer: optim.Optimizer,
    scheduler: Optional[optim.lr_scheduler.LRScheduler],
    device: Union[str, torch.device],
) -> tuple[float, float]:
    """Train a model for one epoch.

    Args:
        model: The model, which is set to training mode.
        loader: An iterable of (images, labels).
        criterion: The loss function, returning the mean over a batch.
        optimizer: The optimizer.
        scheduler: A scheduler that is stepped after each batch, or ``None``.
        device: The device on which to train.

    Returns:
        The mean loss and the accuracy over all images of the epoch.

    Raises:
        TypeError: If ``model`` is not a module or ``criterion`` is not callable.
        ValueError: If the loader does not yield any image.
    """
    _require_module(model)
    if not callable(criterion):
        raise TypeError("`criterion` must be callable.")

    model.train()
    total_loss = 0.0
    total_correct = 0
    total_images = 0
    for images, labels in loader:
        images = images.to(device)
        labels = labels.to(device)

        optimizer.zero_grad(set_to_none=True)
        logits = model(images)
        loss = criterion(logits, labels)
        loss.backward()
        optimizer.step()
        if scheduler is not None:
            scheduler.step()

        batch_size = labels.shape[0]
        total_loss += loss.item() * batch_size
        total_correct += int((logits.argmax(dim=1) == labels).sum().item())
        total_images += batch_size

    if total_images == 0:
        raise ValueError("`loader` did not yield any images.")
    return total_loss / total_images, total_correct / total_images


@torch.no_grad()
def evaluate(
    model: nn.Module,
    loader: Iterable[tuple[Tensor, Tensor]],
    criterion: nn.Module,
    device: Union[str, torch.device],
) -> dict[str, Any]:
    """Evaluate a model without computing gradients.

    Args:
        model: The model, which is set to evaluation mode.
        loader: An iterable of (images, labels).
        criterion: The loss function, returning the mean over a batch.
        device: The device on which to evaluate.

    Returns:
        A dictionary with ``loss``, ``accuracy``, ``targets``, ``predictions`` and
        ``probabilities``. All tensors are on the CPU.

    Raises:
        TypeError: If ``model`` is not a module.
        ValueError: If the loader does not yield any image.
    """
    _require_module(model)
    model.eval()

    total_loss = 0.0
    all_targets: list[Tensor] = []
    all_probabilities: list[Tensor] = []
    all_predictions: list[Tensor] = []
    for images, labels in loader:
        images = images.to(device)
        labels = labels.to(device)
        logits = model(images)
        total_loss += criterion(logits, labels).item() * labels.shape[0]
        all_targets.append(labels.cpu())
        all_predictions.append(logits.argmax(dim=1).cpu())
        all_probabilities.append(torch.softmax(logits, dim=1).cpu())

    if not all_targets:
        raise ValueError("`loader` did not yield any images.")
    targets = torch.cat(all_targets)
    predictions = torch.cat(all_predictions)
    return {
        "loss": total_loss / len(targets),
        "accuracy": (predictions == targets).double().mean().item(),
        "targets": targets,
        "predictions": predictions,
        "probabilities": torch.cat(all_probabilities),
    }


def _make_optimizer(model: nn.Module) -> optim.Optimizer:
    """Create the AdamW optimizer of a model.

    Biases, norms, class token and positions are exempt from weight decay, following
    common practice.

    Args:
        model: The model to be optimised.

    Returns:
        An AdamW optimizer with two parameter groups.
    """
    is_resnet = isinstance(model, ResNet18)
    learning_rate = (
        Hyper.RESNET_LEARNING_RATE if is_resnet else Hyper.VIT_LEARNING_RATE
    )
    weight_decay = Hyper.RESNET_WEIGHT_DECAY if is_resnet else Hyper.VIT_WEIGHT_DECAY
    decayed, exempt = [], []
    for name, parameter in model.named_parameters():
        if not parameter.requires_grad:
            continue
        special = parameter.dim() < 2 or name in ("class_token", "position_table")
        (exempt if special else decayed).append(parameter)
    groups = [
        {"params": decayed, "weight_decay": weight_decay.value},
        {"params": exempt, "weight_decay": 0.0},
    ]
    return optim.AdamW(
        [group for group in groups if group["params"]], lr=learning_rate.value
    )


def _make_scheduler(
    optimizer: optim.Optimizer, steps_per_epoch: int, epochs: int
) -> optim.lr_scheduler.LambdaLR:
    """Create the per-batch scheduler around :func:`warmup_cosine`."""
    total_steps = steps_per_epoch * epochs
    warmup_steps = int(Hyper.WARMUP_FRACTION.value * total_steps)

    def factor(step: int) -> float:
        return warmup_cosine(step, warmup_steps, total_steps)

    return optim.lr_scheduler.LambdaLR(optimizer, lr_lambda=factor)


def fit(
    model: nn.Module,
    loaders: Mapping[str, Iterable[tuple[Tensor, Tensor]]],
    epochs: int,
    device: Union[str, torch.device],
) -> History:
    """Train a model and restore the weights of its best epoch.

    The best epoch is the one with the highest validation accuracy. If several epochs
    share the highest accuracy, the first one of them wins.

    Args:
        model: A :class:`VisionTransformer` or a :class:`ResNet18`.
        loaders: A mapping with the keys ``"train"`` and ``"validation"``.
        epochs: The number of epochs.
        device: The device on which to train.

    Returns:
        The history: a dictionary of four lists with one number per epoch.

    Raises:
        TypeError: If ``model`` is not a module or ``epochs`` is not an integer.
        ValueError: If ``epochs`` is not positive.
        KeyError: If one of the loaders is missing.
    """
    _require_module(model)
    epochs = _require_positive_int(epochs, "epochs")
    missing = [split.value for split in Split if split.value not in loaders]
    if missing:
        raise KeyError(f"`loaders` lacks the key(s) {missing}.")

    train_loader = loaders[Split.TRAIN.value]
    validation_loader = loaders[Split.VALIDATION.value]
    model.to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = _make_optimizer(model)
    scheduler = _make_scheduler(optimizer, len(train_loader), epochs)

    history: History = {key.value: [] for key in HistoryKey}
    best_accuracy = -math.inf
    best_state: Optional[dict[str, Tensor]] = None
    for epoch in range(1, epochs + 1):
        train_loss, train_accuracy = train_epoch(
            model, train_loader, criterion, optimizer, scheduler, device
        )
        validation = evaluate(model, validation_loader, criterion, device)
        history[HistoryKey.TRAIN_LOSS.value].append(train_loss)
        history[HistoryKey.TRAIN_ACCURACY.value].append(train_accuracy)
        history[HistoryKey.VALIDATION_LOSS.value].append(validation["loss"])
        history[HistoryKey.VALIDATION_ACCURACY.value].append(validation["accuracy"])
        logger.info(
            "Epoch %2d/%d: train loss %.4f, accuracy %.4f; validation accuracy %.4f",
            epoch,
            epochs,
            train_loss,
            train_accuracy,
            validation["accuracy"],
        )
        if validation["accuracy"] > best_accuracy:
            best_accuracy = validation["accuracy"]
            # A deep copy is essential: state_dict() only holds references.
            best_state = copy.deepcopy(model.state_dict())

    if best_state is not None:
        model.load_state_dict(best_state)
    return history


# --------------------------------------------------------------------------------------
# 6. Metrics
# --------------------------------------------------------------------------------------


def _safe_divide(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    """Divide element by element, with 0 / 0 defined as 0."""
    numerator = np.asarray(numerator, dtype=np.float64)
    denominator = np.asarray(denominator, dtype=np.float64)
    return np.divide(
        numerator, denominator, out=np.zeros_like(numerator), where=denominator != 0
    )


def _average_ranks(scores: np.ndarray) -> np.ndarray:
    """Return the ranks of scores (from one), with tied scores sharing their mean rank."""
    _, inverse, counts = np.unique(scores, return_inverse=True, return_counts=True)
    last_rank = np.cumsum(counts)
    mean_rank = last_rank - (counts - 1) / 2.0
    return mean_rank[inverse.reshape(-1)]


def _binary_roc_auc(is_positive: np.ndarray, scores: np.ndarray) -> float:
    """Compute the ROC-AUC by the Mann-Whitney U statistic.

    Args:
        is_positive: A boolean array.
        scores: The scores of the positive class.

    Returns:
        The area under the ROC curve, or NaN without positives or without negatives.
    """
    positives = int(is_positive.sum())
    negatives = int(is_positive.size - positives)
    if positives == 0 or negatives == 0:
        return float("nan")
    rank_sum = _average_ranks(scores)[is_positive].sum()
    u_statistic = rank_sum - positives * (positives + 1) / 2.0
    return float(u_statistic / (positives * negatives))


def _averages(values: np.ndarray, support: np.ndarray) -> tuple[float, float]:
    """Compute the macro and the weighted average over the classes with support.

    NaN values are skipped, and the weights are normalised without them.

    Args:
        values: One value per class, possibly NaN.
        support: The number of images per class.

    Returns:
        The macro average and the weighted average (NaN if nothing is left).
    """
    usable = (support > 0) & ~np.isnan(values)
    if not usable.any():
        return float("nan"), float("nan")
    macro = float(values[usable].mean())
    weighted = float(np.average(values[usable], weights=support[usable]))
    return macro, weighted


def classification_metrics(
    targets: ArrayLike, probabilities: ArrayLike
) -> dict[str, Any]:
    """Compute the metrics of a multi-class classifier with NumPy alone.

    Args:
        targets: The true classes, of shape (n,).
        probabilities: The predicted probabilities, of shape (n, classes).

    Returns:
        A dictionary with ``confusion`` (rows are true classes), ``precision``, ``recall``,
        ``f1``, ``support``, ``roc_auc``, ``accuracy`` and the ``macro_`` and ``weighted_``
        averages of precision, recall, F1 and ROC-AUC.

    Raises:
        ValueError: If the shapes do not agree, or a target is not a valid class.
    """
    targets = _to_numpy(targets).reshape(-1).astype(np.int64)
    probabilities = _to_numpy(probabilities)
    if probabilities.ndim != 2:
        raise ValueError(
            f"`probabilities` must have 2 dimensions, got shape {probabilities.shape}."
        )
    if len(targets) != len(probabilities):
        raise ValueError(
            f"Got {len(targets)} targets, but {len(probabilities)} rows of probabilities."
        )
    num_classes = probabilities.shape[1]
    if targets.size and not (0 <= targets.min() and targets.max() < num_classes):
        raise ValueError(f"`targets` must lie between 0 and {num_classes - 1}.")

    predictions = probabilities.argmax(axis=1)
    confusion = np.zeros((num_classes, num_classes), dtype=np.int64)
    np.add.at(confusion, (targets, predictions), 1)

    true_positives = np.diag(confusion)
    support = confusion.sum(axis=1)
    precision = _safe_divide(true_positives, confusion.sum(axis=0))
    recall = _safe_divide(true_positives, support)
    f1 = _safe_divide(2.0 * precision * recall, precision + recall)
    roc_auc = np.array(
        [
            _binary_roc_auc(targets == index, probabilities[:, index])
            for index in range(num_classes)
        ]
    )

    metrics: dict[str, Any] = {
        "confusion": confusion,
        "precision": precision,
        "recall": recall,
        "f1": f1,
        "support": support,
        "roc_auc": roc_auc,
        "accuracy": float(_safe_divide(true_positives.sum(), confusion.sum())),
    }
    for name in ("precision", "recall", "f1", "roc_auc"):
        macro, weighted = _averages(metrics[name], support)
        metrics[f"macro_{name}"] = macro
        metrics[f"weighted_{name}"] = weighted
    return metrics


def _flatten_metrics(value: Any, prefix: str) -> list[tuple[str, Any]]:
    """Flatten nested metrics into a list of (dotted name, number)."""
    if isinstance(value, Mapping):
        rows: list[tuple[str, Any]] = []
        for name, inner in value.items():
            full_name = f"{prefix}.{name}" if prefix else str(name)
            rows.extend(_flatten_metrics(inner, full_name))
        return rows

    array = _to_numpy(value)
    if array.ndim == 0:
        return [(prefix, array.item())]
    if array.ndim == 1:
        return [(f"{prefix}.{index}", item.item()) for index, item in enumerate(array)]
    logger.debug("Skipping %s, which has %d dimensions", prefix, array.ndim)
    return []


def export_metrics(metrics: Mapping[str, Any], path: Union[str, os.PathLike]) -> None:
    """Write metrics to a CSV file with the columns ``metric`` and ``value``.

    Args:
        metrics: A (nested) mapping of numbers, one-dimensional arrays and mappings.
            Arrays with two or more dimensions are left out.
        path: The path of the file.

    Raises:
        TypeError: If ``metrics`` is not a mapping.
    """
    if not isinstance(metrics, Mapping):
        raise TypeError(f"`metrics` must be a mapping, got {type(metrics).__name__}.")
    rows = _flatten_metrics(metrics, prefix="")
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["metric", "value"])
        writer.writerows(rows)
    logger.info("Wrote %d metrics to %s", len(rows), path)


# --------------------------------------------------------------------------------------
# 7. Visualisation
# --------------------------------------------------------------------------------------


def _denormalize(
    images: Tensor, mean: Sequence[float], std: Sequence[float]
) -> np.ndarray:
    """Undo the normalisation of images.

    Args:
        images: Images of shape (n, channels, height, width).
        mean: The mean of each channel.
        std: The standard deviation of each channel.

    Returns:
        An array of shape (n, height, width, channels) with values between 0 and 1.
    """
    images = torch.as_tensor(images).detach().cpu().float()
    _require_tensor(images, "images", 4)
    mean_tensor = torch.as_tensor(mean, dtype=torch.float32).view(1, -1, 1, 1)
    std_tensor = torch.as_tensor(std, dtype=torch.float32).view(1, -1, 1, 1)
    restored = (images * std_tensor + mean_tensor).clamp(0.0, 1.0)
    return restored.permute(0, 2, 3, 1).numpy()


def plot_learning_curves(history: History) -> Figure:
    """Plot losses and accuracies of training and validation over the epochs.

    Args:
        history: The dictionary returned by :func:`fit`.

    Returns:
        The figure.

    Raises:
        KeyError: If a key of the history is missing.
    """
    missing = [key.value for key in HistoryKey if key.value not in history]
    if missing:
        raise KeyError(f"`history` lacks the key(s) {missing}.")

    epochs = range(1, len(history[HistoryKey.TRAIN_LOSS.value]) + 1)
    panels = (
        ("Loss", HistoryKey.TRAIN_LOSS, HistoryKey.VALIDATION_LOSS),
        ("Accuracy", HistoryKey.TRAIN_ACCURACY, HistoryKey.VALIDATION_ACCURACY),
    )
    figure, axes = plt.subplots(1, 2, figsize=(11, 4))
    for axis, (label, train_key, validation_key) in zip(axes, panels):
        axis.plot(epochs, history[train_key.value], marker="o", label="Training")
        axis.plot(epochs, history[validation_key.value], marker="s", label="Validation")
        axis.set_xlabel("Epoch")
        axis.set_ylabel(label)
        axis.set_title(f"{label} over epochs")
        axis.grid(alpha=0.3)
        axis.legend()
    figure.tight_layout()
    return figure


def plot_confusion_matrix(matrix: ArrayLike, class_names: Sequence[str]) -> Figure:
    """Plot a confusion matrix with its counts.

    Args:
        matrix: Counts of shape (classes, classes), whose rows are the true classes.
        class_names: The names of the classes.

    Returns:
        The figure.

    Raises:
        ValueError: If the matrix is not square or does not fit the names.
    """
    matrix = _to_numpy(matrix)
    size = len(class_names)
    if matrix.shape != (size, size):
        raise ValueError(
            f"`matrix` must have the shape ({size}, {size}), got {matrix.shape}."
        )

    figure, axis = plt.subplots(figsize=(8, 7))
    picture = axis.imshow(matrix, cmap="Blues")
    figure.colorbar(picture, ax=axis, fraction=0.046, pad=0.04)
    axis.set_xticks(range(size), labels=class_names, rotation=45, ha="right")
    axis.set_yticks(range(size), labels=class_names)
    axis.set_xlabel("Predicted class")
    axis.set_ylabel("True class")
    axis.set_title("Confusion matrix")
    threshold = matrix.max() / 2.0
    for row in range(size):
        for column in range(size):
            axis.text(
                column,
                row,
                f"{int(matrix[row, column])}",
                ha="center",
                va="center",
                color="white" if matrix[row, column] > threshold else "black",
            )
    figure.tight_layout()
    return figure


def _roc_curve(
    is_positive: np.ndarray, scores: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Compute the points of a ROC curve, one for each distinct score.

    Args:
        is_positive: A boolean array with at least one true and one false value.
        scores: The scores of the positive class.

    Returns:
        False positive rates and true positive rates, both from 0 to 1.
    """
    ordering = np.argsort(-scores, kind="stable")
    sorted_scores = scores[ordering]
    sorted_positive = is_positive[ordering]
    true_positives = np.cumsum(sorted_positive)
    false_positives = np.cumsum(~sorted_positive)
    # Only the last image of a run of equal scores is a possible threshold.
    ends = np.append(np.flatnonzero(np.diff(sorted_scores)), scores.size - 1)
    true_rate = np.concatenate(([0.0], true_positives[ends] / true_positives[-1]))
    false_rate = np.concatenate(([0.0], false_positives[ends] / false_positives[-1]))
    return false_rate, true_rate


def plot_roc(
    targets: ArrayLike, probabilities: ArrayLike, class_names: Sequence[str]
) -> Figure:
    """Plot the one-versus-rest ROC curve of each class.

    Classes without positives or without negatives are skipped with a warning.

    Args:
        targets: The true classes, of shape (n,).
        probabilities: The predicted probabilities, of shape (n, classes).
        class_names: The names of the classes.

    Returns:
        The figure.
    """
    targets = _to_numpy(targets).reshape(-1)
    probabilities = _to_numpy(probabilities)

    figure, axis = plt.subplots(figsize=(7, 6))
    for index, name in enumerate(class_names):
        is_positive = targets == index
        if is_positive.all() or not is_positive.any():
            logger.warning("No ROC curve for class %s", name)
            continue
        scores = probabilities[:, index]
        false_rate, true_rate = _roc_curve(is_positive, scores)
        area = _binary_roc_auc(is_positive, scores)
        axis.plot(false_rate, true_rate, label=f"{name} (AUC = {area:.3f})")
    axis.plot([0, 1], [0, 1], linestyle="--", color="gray", label="chance")
    axis.set_xlabel("False positive rate")
    axis.set_ylabel("True positive rate")
    axis.set_title("One-versus-rest ROC curves")
    axis.legend(loc="lower right", fontsize=8)
    figure.tight_layout()
    return figure


def plot_attention(
    model: nn.Module,
    images: Tensor,
    labels: ArrayLike,
    class_names: Sequence[str],
    mean: Sequence[float],
    std: Sequence[float],
) -> Figure:
    """Plot images, their attention maps and overlays of both.

    Args:
        model: A Vision Transformer.
        images: Normalised images of shape (n, channels, height, width).
        labels: The true classes, of shape (n,).
        class_names: The names of the classes.
        mean: The mean of each channel used for normalisation.
        std: The standard deviation of each channel used for normalisation.

    Returns:
        The figure with one row per image.
    """
    pictures = _denormalize(images, mean, std)
    labels = _to_numpy(labels).reshape(-1)

    figure, axes = plt.subplots(
        len(pictures), 3, figsize=(7, 2.3 * len(pictures)), squeeze=False
    )
    for row, (image, picture, label) in enumerate(zip(images, pictures, labels)):
        heat = attention_map(model, image).numpy()
        axes[row, 0].imshow(picture)
        axes[row, 0].set_title(class_names[int(label)])
        axes[row, 1].imshow(heat, cmap="viridis", vmin=0.0, vmax=1.0)
        axes[row, 1].set_title("Attention")
        axes[row, 2].imshow(picture)
        axes[row, 2].imshow(heat, cmap="jet", alpha=0.45, vmin=0.0, vmax=1.0)
        axes[row, 2].set_title("Overlay")
        for axis in axes[row]:
            axis.axis("off")
    figure.tight_layout()
    return figure


def plot_top3(
    images: Tensor,
    labels: ArrayLike,
    probabilities: ArrayLike,
    class_names: Sequence[str],
    mean: Sequence[float],
    std: Sequence[float],
) -> Figure:
    """Plot each image beside a bar chart of its three likeliest classes.

    Args:
        images: Normalised images of shape (n, channels, height, width).
        labels: The true classes, of shape (n,).
        probabilities: The predicted probabilities, of shape (n, classes).
        class_names: The names of the classes.
        mean: The mean of each channel used for normalisation.
        std: The standard deviation of each channel used for normalisation.

    Returns:
        The figure with one row per image.
    """
    pictures = _denormalize(images, mean, std)
    labels = _to_numpy(labels).reshape(-1)
    probabilities = _to_numpy(probabilities)
    count = min(TOP_K, probabilities.shape[1])

    figure, axes = plt.subplots(
        len(pictures), 2, figsize=(7, 2.2 * len(pictures)), squeeze=False
    )
    for row, picture in enumerate(pictures):
        image_axis, bar_axis = axes[row]
        image_axis.imshow(picture)
        image_axis.set_title(f"True: {class_names[int(labels[row])]}")
        image_axis.axis("off")

        best = np.argsort(-probabilities[row], kind="stable")[:count]
        values = probabilities[row][best]
        colors = ["tab:green" if index == labels[row] else "tab:red" for index in best]
        bars = bar_axis.barh(range(count), values, color=colors)
        bar_axis.bar_label(bars, labels=[f"{value:.1%}" for value in values], padding=3)
        bar_axis.set_yticks(range(count), labels=[class_names[index] for index in best])
        bar_axis.invert_yaxis()  # the likeliest class is at the top
        bar_axis.set_xlim(0.0, 1.2)
        bar_axis.set_xlabel("Probability")
    figure.tight_layout()
    return figure


# --------------------------------------------------------------------------------------
# 8. Experiments
# --------------------------------------------------------------------------------------

VIT_EPOCHS: Final[int] = 15
RESNET_EPOCHS: Final[int] = 15

start = time.time()
vit = VisionTransformer(
    patch_size=4,
    num_classes=len(class_names),
    dim=96,
    depth=6,
    heads=4,
    mlp_ratio=2.0,
    dropout=0.0,
    positions=PositionKind.LEARNED.value,
    pool=PoolKind.MEAN.value,
)
vit_history = fit(vit, loaders, VIT_EPOCHS, device)
torch.save(vit.state_dict(), f"{STUDENT_ID}_CIFAR10_vit.pth")
logger.info("The ViT took %.0f s", time.time() - start)

start = time.time()
resnet = ResNet18(num_classes=len(class_names), width=16)
resnet_history = fit(resnet, loaders, RESNET_EPOCHS, device)
torch.save(resnet.state_dict(), f"{STUDENT_ID}_CIFAR10_resnet.pth")
logger.info("The ResNet took %.0f s", time.time() - start)

criterion = nn.CrossEntropyLoss()
measures: dict[str, dict[str, Any]] = {}
for name, model, history in (
    ("vit", vit, vit_history),
    ("resnet", resnet, resnet_history),
):
    found = evaluate(model, test_loader, criterion, device)
    measures[name] = classification_metrics(found["targets"], found["probabilities"])
    logger.info("%s: test accuracy %.4f", name, found["accuracy"])
    for part, parameters in parameter_table(model):
        logger.info("%s: %-16s %9d parameters", name, part, parameters)
    plot_learning_curves(history)
    plot_confusion_matrix(measures[name]["confusion"], class_names)
    plot_roc(found["targets"], found["probabilities"], class_names)
export_metrics(measures, f"{STUDENT_ID}_metrics.csv")

images, labels = next(iter(test_loader))
images, labels = images[:6], labels[:6]
plot_attention(vit, images, labels, class_names, MEAN, STD)
vit.eval()
with torch.no_grad():
    top_probabilities = torch.softmax(vit(images.to(device)), dim=1).cpu()
plot_top3(images, labels, top_probabilities, class_names, MEAN, STD)

# ---- Ablation study ------------------------------------------------------------------

RUN_STUDY: Final[bool] = False  # the table has been created; set to True to repeat it
STUDY_SEEDS: Final[tuple[int, ...]] = (0, 1, 2)
COLUMNS: Final[list[str]] = [
    "patch_size",
    "dim",
    "depth",
    "heads",
    "mlp_ratio",
    "positions",
    "epochs",
    "seed",
    "parameters",
    "validation_accuracy",
]
BASE: Final[dict[str, Any]] = {
    "patch_size": 8,
    "dim": 48,
    "depth": 2,
    "heads": 4,
    "mlp_ratio": 2.0,
    "positions": PositionKind.LEARNED.value,
    "epochs": 6,
}
VARIATIONS: Final[list[dict[str, Any]]] = [
    {"patch_size": 4},
    {"dim": 96},
    {"depth": 4},
    {"depth": 6},
    {"heads": 2},
    {"mlp_ratio": 4.0},
    {"positions": PositionKind.SINUSOIDAL.value},
]


def trained_row(values: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Train a fresh Vision Transformer and return its row of the study.

    Args:
        values: The architecture and the number of epochs.
        seed: The seed of the random number generator.

    Returns:
        A dictionary with the columns of the study.
    """
    torch.manual_seed(seed)
    sizes = {key: value for key, value in values.items() if key != "epochs"}
    model = VisionTransformer(**sizes, dropout=0.0, num_classes=len(class_names))
    fit(model, loaders, values["epochs"], device)
    found = evaluate(model, loaders[Split.VALIDATION.value], criterion, device)
    return {
        **values,
        "seed": seed,
        "parameters": sum(count for _, count in parameter_table(model)),
        "validation_accuracy": round(found["accuracy"], 4),
    }


if RUN_STUDY:
    rows = [trained_row(BASE, seed) for seed in STUDY_SEEDS]
    rows += [trained_row({**BASE, **change}, STUDY_SEEDS[0]) for change in VARIATIONS]
    with open(f"{STUDENT_ID}_study.csv", "w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, COLUMNS)
        table.writeheader()
        table.writerows(rows)
