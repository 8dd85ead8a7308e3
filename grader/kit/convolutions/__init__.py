"""What a course on convolutional networks may import: readings of students' weights, properties of layers.

It implements no part of a network that an assignment may grade; what it computes, it computes by PyTorch's
own functions, on the students' own weights.
"""

from grader.kit.convolutions.convolution import Convolution, convolutions
from grader.kit.convolutions.normalization import BatchNorm, batch_norm_oddities, batch_norms
from grader.kit.convolutions.shortcuts import Shortcut, shortcut
from grader.kit.convolutions.strides import moves_with_input, strides

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
