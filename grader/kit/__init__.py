"""The neutral part of what a check or a data set may import: it knows no assignment and no family of models.

It holds no answers, and no torch at module level. What knows a family stands beside it, in
`grader.kit.transformers` and `grader.kit.convolutions`.
"""

from grader.domain.quoting import named, quoted
from grader.domain.standin_behavior import StandIn
from grader.kit.captions import PREDICTED, TRUE, classes_named, numbers_named, plain, stated
from grader.kit.closeness import difference, same
from grader.kit.csv_rows import csv_rows
from grader.kit.evaluations import evaluation_data, evaluations, losses
from grader.kit.fakes import Batches, Fake, FakeCall, FakeObject, Library, Part, batches
from grader.kit.gradients import GradientFault, gradient_fault
from grader.kit.mismatch import Cause, Mismatch, Undecided
from grader.kit.mixing import Cutmix, Mixup, cutmix_of, mixup_of
from grader.kit.numbered_inputs import (
    image_number,
    image_numbers,
    numbered_images,
    numbered_tokens,
    token_numbers,
)
from grader.kit.plots import ACCURACY, Curve, HeatMap, Picture, curves, drawn, heat_maps, pictures
from grader.kit.recognition import images_within
from grader.kit.rig import RiggedData, classified_data, trainable_data
from grader.kit.spare import at_rest, with_effect
from grader.kit.splits import Examples, Splits, stratified_split
from grader.kit.standins import answer, stand_in_class

__all__ = [
    "ACCURACY",
    "PREDICTED",
    "TRUE",
    "Batches",
    "Cause",
    "Curve",
    "Cutmix",
    "Examples",
    "Fake",
    "FakeCall",
    "FakeObject",
    "GradientFault",
    "HeatMap",
    "Library",
    "Mismatch",
    "Mixup",
    "Part",
    "Picture",
    "RiggedData",
    "Splits",
    "StandIn",
    "Undecided",
    "answer",
    "at_rest",
    "batches",
    "classes_named",
    "classified_data",
    "csv_rows",
    "curves",
    "cutmix_of",
    "difference",
    "drawn",
    "evaluation_data",
    "evaluations",
    "gradient_fault",
    "heat_maps",
    "image_number",
    "image_numbers",
    "images_within",
    "losses",
    "mixup_of",
    "named",
    "numbered_images",
    "numbered_tokens",
    "numbers_named",
    "pictures",
    "plain",
    "quoted",
    "same",
    "stand_in_class",
    "stated",
    "stratified_split",
    "token_numbers",
    "trainable_data",
    "with_effect",
]
