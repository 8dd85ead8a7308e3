"""Configurations: everything that a model needs to know of itself."""

import json
from dataclasses import asdict, dataclass


@dataclass
class PretrainedConfig:
    """What all configurations can do."""

    def to_dict(self):
        return asdict(self)

    def to_json_string(self):
        return json.dumps(self.to_dict(), indent=2, sort_keys=True)

    def __repr__(self):
        return f"{type(self).__name__} {self.to_json_string()}"


@dataclass(repr=False)
class ViTConfig(PretrainedConfig):
    image_size: int = 32
    patch_size: int = 4
    num_channels: int = 3
    num_labels: int = 10
    hidden_size: int = 192
    num_hidden_layers: int = 9
    num_attention_heads: int = 8
    mlp_ratio: float = 4.0
    dropout_prob: float = 0.1
    position_embedding_type: str = "learned"
    pooling: str = "cls"
    initializer_range: float = 0.02
    layer_norm_eps: float = 1e-12

    def __post_init__(self):
        if self.hidden_size % self.num_attention_heads != 0:
            raise ValueError(
                f"The hidden size {self.hidden_size} is not a multiple of the number of attention heads "
                f"{self.num_attention_heads}."
            )
        if self.position_embedding_type not in ("learned", "sinusoidal"):
            raise ValueError(f"Unknown position_embedding_type {self.position_embedding_type!r}")
        if self.pooling not in ("cls", "mean"):
            raise ValueError(f"Unknown pooling {self.pooling!r}")

    @property
    def intermediate_size(self):
        return int(self.hidden_size * self.mlp_ratio)

    @property
    def num_patches(self):
        return (self.image_size // self.patch_size) ** 2

    @property
    def sequence_length(self):
        return self.num_patches + (self.pooling == "cls")


@dataclass(repr=False)
class ResNetConfig(PretrainedConfig):
    num_channels: int = 3
    embedding_size: int = 64
    depths: tuple = (2, 2, 2, 2)
    num_labels: int = 10

    @property
    def hidden_sizes(self):
        return [self.embedding_size * 2**stage for stage in range(len(self.depths))]
