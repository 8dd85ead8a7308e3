"""All that a check or a data set may import. It holds no answers, and no torch at module level."""

from grader.domain.quoting import named, quoted
from grader.domain.standin_behavior import StandIn
from grader.kit.behavior import oddities
from grader.kit.captions import PREDICTED, TRUE, classes_named, numbers_named, plain, stated
from grader.kit.closeness import difference, same
from grader.kit.encoders import block_weights, inline_attentions, inline_feed_forwards, without_biases
from grader.kit.evaluations import evaluation_data, evaluations, losses
from grader.kit.fakes import Batches, Fake, FakeCall, FakeObject, Part, batches
from grader.kit.fields import Fields, fields
from grader.kit.layers import activations, feed_forwards, layer_norms, two_layers
from grader.kit.mismatch import Cause, Mismatch, Undecided
from grader.kit.patches import grids, places_rearranged, rearranged
from grader.kit.plots import ACCURACY, HeatMap, Picture, drawn, heat_maps, pictures
from grader.kit.projections import Projections, UnreadableWeights, attention, readings
from grader.kit.recognition import images_within
from grader.kit.rig import RiggedData, classified_data, image_number, trainable_data
from grader.kit.spare import at_rest, with_effect
from grader.kit.splits import Examples, Splits, stratified_split
from grader.kit.standins import answer, stand_in_class

__all__ = [
    "ACCURACY",
    "PREDICTED",
    "TRUE",
    "Batches",
    "Cause",
    "Examples",
    "Fake",
    "FakeCall",
    "FakeObject",
    "Fields",
    "HeatMap",
    "Mismatch",
    "Part",
    "Picture",
    "Projections",
    "RiggedData",
    "Splits",
    "StandIn",
    "Undecided",
    "UnreadableWeights",
    "activations",
    "answer",
    "at_rest",
    "attention",
    "batches",
    "block_weights",
    "classes_named",
    "classified_data",
    "difference",
    "drawn",
    "evaluation_data",
    "evaluations",
    "feed_forwards",
    "fields",
    "grids",
    "heat_maps",
    "image_number",
    "images_within",
    "inline_attentions",
    "inline_feed_forwards",
    "layer_norms",
    "losses",
    "named",
    "numbers_named",
    "oddities",
    "pictures",
    "places_rearranged",
    "plain",
    "quoted",
    "readings",
    "rearranged",
    "same",
    "stand_in_class",
    "stated",
    "stratified_split",
    "trainable_data",
    "two_layers",
    "with_effect",
    "without_biases",
]
