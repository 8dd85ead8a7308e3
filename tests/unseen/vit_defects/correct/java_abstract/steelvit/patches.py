"""Patch embedders and poolings, with the factories that choose one."""

from torch import nn

from .contracts import AbstractPatchEmbedder, AbstractPooling, PatchStrategy, PoolType


class ReshapePatchEmbedder(AbstractPatchEmbedder):
    """Cuts by reshaping, then one linear layer for all patches."""

    def __init__(self, image_size, patch_size, channels, dim):
        super().__init__(image_size, patch_size, channels, dim)
        self._projection = nn.Linear(self.get_patch_dim(), dim)

    def forward(self, img):
        batch = img.shape[0]
        n, p, c = self._patches_per_side, self._patch_size, self._channels
        patches = img.view(batch, c, n, p, n, p).permute(0, 2, 4, 1, 3, 5).contiguous()
        return self._projection(patches.view(batch, n * n, c * p * p))

    def describe(self):
        return f"{self.get_number_of_patches()} patches by reshaping, {self.get_patch_dim()} -> {self._dim}"


class ConvolutionPatchEmbedder(AbstractPatchEmbedder):
    """The same mapping as a convolution whose stride is its size."""

    def __init__(self, image_size, patch_size, channels, dim):
        super().__init__(image_size, patch_size, channels, dim)
        self._projection = nn.Conv2d(channels, dim, kernel_size=patch_size, stride=patch_size)

    def forward(self, img):
        return self._projection(img).flatten(2).transpose(1, 2)

    def describe(self):
        return f"{self.get_number_of_patches()} patches by convolution, {self.get_patch_dim()} -> {self._dim}"


class PatchEmbedderFactory:
    _PRODUCTS = {
        PatchStrategy.RESHAPE: ReshapePatchEmbedder,
        PatchStrategy.CONVOLUTION: ConvolutionPatchEmbedder,
    }

    @classmethod
    def create(cls, strategy, image_size, patch_size, channels, dim):
        return cls._PRODUCTS[strategy](image_size, patch_size, channels, dim)


class ClassTokenPooling(AbstractPooling):
    def forward(self, x):
        return x.select(1, 0)

    def describe(self):
        return "class token"


class MeanPooling(AbstractPooling):
    def forward(self, x):
        return x.mean(dim=1)

    def describe(self):
        return "mean of all tokens"


class PoolingFactory:
    _PRODUCTS = {PoolType.CLS: ClassTokenPooling, PoolType.MEAN: MeanPooling}

    @classmethod
    def create(cls, name):
        return cls._PRODUCTS[PoolType(name)]()  # PoolType raises a ValueError for an unknown name
