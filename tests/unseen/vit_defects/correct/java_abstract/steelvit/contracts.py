"""The interfaces and abstract base classes."""

from abc import ABC, abstractmethod
from enum import Enum

from torch import nn


class Describable(ABC):
    """Something that can say in a line what it is."""

    @abstractmethod
    def describe(self):
        """A short text."""


class AbstractTokenLayer(nn.Module, Describable):
    """Maps tokens (batch, tokens, dim) to tokens of the same shape."""

    def __init__(self, dim):
        super().__init__()
        self._dim = dim

    def get_dim(self):
        return self._dim

    @abstractmethod
    def forward(self, x):
        """Subclasses say how."""


class AbstractPatchEmbedder(nn.Module, Describable):
    """Maps images (batch, channels, side, side) to tokens (batch, patches, dim)."""

    def __init__(self, image_size, patch_size, channels, dim):
        super().__init__()
        if image_size % patch_size != 0:
            raise ValueError(f"patch_size {patch_size} does not divide image_size {image_size}")
        self._patches_per_side = image_size // patch_size
        self._patch_size = patch_size
        self._channels = channels
        self._dim = dim

    def get_number_of_patches(self):
        return self._patches_per_side**2

    def get_patch_dim(self):
        return self._channels * self._patch_size**2

    @abstractmethod
    def forward(self, img):
        """Subclasses say how."""


class AbstractPooling(nn.Module, Describable):
    """Maps tokens (batch, tokens, dim) to one vector per image (batch, dim)."""

    @abstractmethod
    def forward(self, x):
        """Subclasses say how."""


class LearningRateSchedule(ABC):
    """Strategy: which learning rate an epoch has."""

    @abstractmethod
    def get_rate(self, epoch):
        """The rate of the epoch, which counts from 0."""


class TrainingListener(ABC):
    """Observer: is told when an epoch is over."""

    @abstractmethod
    def on_epoch_end(self, epoch, model):
        """Called after the evaluation of the epoch."""


class PatchStrategy(Enum):
    RESHAPE = "reshape"
    CONVOLUTION = "convolution"


class PoolType(Enum):
    CLS = "cls"
    MEAN = "mean"
