"""What a course on Transformers may import: readings of students' weights, and properties of their layers.

It implements no part of a Transformer that an assignment may grade: it computes with PyTorch's own functions,
on the students' own weights.
"""

from grader.kit.transformers.layers import (
    TwoLayers,
    activations,
    block_weights,
    feed_forwards,
    inline_attentions,
    inline_feed_forwards,
    layer_norms,
    linear_layers,
    two_layers,
    without_biases,
)
from grader.kit.transformers.projections import (
    Projections,
    UnreadableWeights,
    attention,
    readings,
    squeezed,
)
from grader.kit.transformers.token_behavior import (
    Fields,
    elsewhere,
    fields,
    grids,
    oddities,
    places_rearranged,
    rearranged,
    sees_patches,
)

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
    "linear_layers",
    "oddities",
    "places_rearranged",
    "readings",
    "rearranged",
    "sees_patches",
    "squeezed",
    "two_layers",
    "without_biases",
]
