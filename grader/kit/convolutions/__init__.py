"""What a course on convolutional networks may import: readings of students' weights, properties of layers.

It implements no part of a network that an assignment may grade: it computes with PyTorch's own functions, on
the students' own weights.
"""

from grader.kit.convolutions.convolution import Convolution, convolutions, moves_with_input, strides
from grader.kit.convolutions.normalization import (
    BatchNorm,
    Shortcut,
    batch_norm_oddities,
    batch_norms,
    shortcut,
)

__all__ = [
    "BatchNorm",
    "Convolution",
    "Shortcut",
    "batch_norm_oddities",
    "batch_norms",
    "convolutions",
    "moves_with_input",
    "shortcut",
    "strides",
]
