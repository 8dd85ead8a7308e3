"""What checks and data sets may import, for any assignment and any family of models.

It holds no answers, and does not import torch at module level. What is for one family is beside it, in
`grader.kit.transformers` and `grader.kit.convolutions`.
"""

from grader.domain.formatting import named, quoted
from grader.domain.program_run import AffineFake
from grader.kit.captions import PREDICTED, TRUE, classes_named, numbers_named, plain, stated
from grader.kit.compared_results import (
    Cause,
    GradientFault,
    Mismatch,
    Undecided,
    at_rest,
    difference,
    gradient_fault,
    same,
    with_effect,
)
from grader.kit.csv_rows import csv_rows
from grader.kit.doubles import (
    Batches,
    Fake,
    FakeCall,
    FakeObject,
    Library,
    Part,
    affine_fake_class,
    answer,
    batches,
)
from grader.kit.drawn_figures import (
    ACCURACY,
    Bar,
    Curve,
    HeatMap,
    Picture,
    bar_lengths,
    bars,
    curves,
    drawn,
    figure_text,
    heat_maps,
    history_series,
    pictures,
    plotted,
    shares_not_shown,
)
from grader.kit.dropout import require_dropout
from grader.kit.epochs_in_turn import measured_by_epochs
from grader.kit.given_images import image_batches
from grader.kit.mixing import Cutmix, Mixup, cutmix_of, mixup_of
from grader.kit.reported import evaluation_data, evaluations, losses
from grader.kit.rigged_data import (
    RiggedData,
    classified_data,
    image_number,
    image_numbers,
    images_within,
    numbered_images,
    numbered_tokens,
    token_numbers,
    trainable_data,
)
from grader.kit.splits import Examples, Splits, stratified_split

__all__ = [
    "ACCURACY",
    "PREDICTED",
    "TRUE",
    "AffineFake",
    "Bar",
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
    "Undecided",
    "affine_fake_class",
    "answer",
    "at_rest",
    "bar_lengths",
    "bars",
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
    "figure_text",
    "gradient_fault",
    "heat_maps",
    "history_series",
    "image_batches",
    "image_number",
    "image_numbers",
    "images_within",
    "losses",
    "measured_by_epochs",
    "mixup_of",
    "named",
    "numbered_images",
    "numbered_tokens",
    "numbers_named",
    "pictures",
    "plain",
    "plotted",
    "quoted",
    "require_dropout",
    "same",
    "shares_not_shown",
    "stated",
    "stratified_split",
    "token_numbers",
    "trainable_data",
    "with_effect",
]
