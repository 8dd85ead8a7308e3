"""What a course on Transformers may import: readings of students' weights, and properties of their layers.

It implements no part of a Transformer that an assignment may grade; what it computes, it computes by
PyTorch's own functions, on the students' own weights.
"""

from grader.kit.transformers.behavior import oddities
from grader.kit.transformers.encoders import (
    block_weights,
    inline_attentions,
    inline_feed_forwards,
    without_biases,
)
from grader.kit.transformers.fields import Fields, fields
from grader.kit.transformers.layers import (
    TwoLayers,
    activations,
    feed_forwards,
    layer_norms,
    two_layers,
)
from grader.kit.transformers.patches import elsewhere, grids, places_rearranged, rearranged, sees_patches
from grader.kit.transformers.projections import Projections, UnreadableWeights, attention, readings

__all__ = [
    "Fields",
    "Projections",
    "TwoLayers",
    "UnreadableWeights",
    "activations",
    "attention",
    "block_weights",
    "elsewhere",
    "feed_forwards",
    "fields",
    "grids",
    "inline_attentions",
    "inline_feed_forwards",
    "layer_norms",
    "oddities",
    "places_rearranged",
    "readings",
    "rearranged",
    "sees_patches",
    "two_layers",
    "without_biases",
]
