"""What checks say of mistakes is told in Persian as a whole, with the clauses that fill its placeholders.

The messages are those that real mistakes got. Those of every mistake of an assignment are gone through where
its mistakes are judged: `tests/checks/test_forms_and_mistakes.py`.
"""

from pathlib import Path

import pytest

from grader.language import language
from grader.language.translation import FOLDER
from tests.english_left import english_left

pytest.importorskip("babel")
REFERENCE = Path(__file__).parents[2] / "reference"
SAID = {  # by the assignment, or by none: what the kit and the judge say
    "vit_cifar10": (
        "The scores are not divided by anything; they should be divided by sqrt(dim / heads), the root of"
        " a head's width.",
        "The scores are multiplied by sqrt(dim / heads); they should be divided by sqrt(dim / heads).",
        "The map's values are those of the first head; they should be the class token's row of the heads'"
        " mean.",
        "The map's values are the class token's column, how much each patch looks at it; they should be "
        "the class token's row of the heads' mean.",
        "The map's values are the mean over all rows; they should be the class token's row of the heads' "
        "mean.",
        "The map's values are the larger ones of the heads; they should be the class token's row of the "
        "heads' mean.",
        "With 9 tokens for 9 patches there is no class token; the map is not the mean over all rows, but "
        "over all columns.",
        "For batches of 8, 8, 8 and 2 images the loss is the mean of the batches' means, 2.352; the mean "
        "over images is 2.182.",
        "For batches of 8, 8, 8 and 2 images the loss is that of the last batch alone, 3.131; the mean "
        "over images is 2.296.",
        "For three images in batches of two and one, 'loss' is 0.602, the mean of the batches' means; the"
        " mean over images is 0.790.",
        "The CSV has no row “vit.accuracy”: the names are joined otherwise. Its rows are “vit/accuracy”, "
        "“vit/f1.0”.",
        "The CSV has no row “vit.accuracy”: the names are without the outer ones. Its rows are "
        "“accuracy”, “ox”.",
        "The CSV has no row “vit.f1.0”: the names are counted from 1. Its rows are “vit.f1.1”, “vit.f1.2”.",
        "With the validation accuracies 0.2, 0.6, 0.4, 0.5, the model is left with the weights of epoch "
        "1, the worst one.",
        "'f1' is 0.875, 0.4167, 0.75; it should be 0.8571, 0.4, 0.6667: it is the plain mean of precision"
        " and recall, not their harmonic mean.",
        "'macro_f1' is 0.6806; it should be 0.6413: it is made from macro_precision and macro_recall.",
        "With warmup_steps=4 and total_steps=12, the factor at the steps 6, 8 and 10 is 0.924, 0.707, "
        "0.383: that is a quarter of a cosine. Half a cosine gives 0.854, 0.500 and 0.146.",
        "The numbers of the table add up to 4445; the model has 4517 parameters, of which just the "
        "missing ones are outside any layer.",
        "An image has the three least likely classes instead of the three likeliest: 'anvil', its "
        "likeliest, is missing.",
        "With pool='cls' and positions='sinusoidal', what is added to the patches is not what "
        "sinusoidal_positions(10, dim) gives, from position 1 on.",
        "Group 3 of the blocks does not halve height and width: its first block has stride 1, not 2.",
        "Of 9 patches (0 to 8), changing the pixels of patch 1 (row 0, column 1) changes the tokens 1 and"
        " 2. It should change token 1 alone.",
        "The table of measures should have `accuracy`, `f1` of each of the two models, under such names; "
        "of these one of them has `accuracy`.",
        "For a class that does not occur, 'f1' is [0.5]; it should be [0.].",
        "What `EncoderBlock(12, 3)` returned is None; it should be 2 values: the tokens and the weights.",
    ),
    "vit_finetune": (
        "For lam = 0.25, labels_a with the loss 1 and labels_b with the loss 3, mixed_loss gives 2.00 "
        "(both count one half, whatever lam is); it should be 2.50.",
        "For lam = 0.25, labels_a with the loss 1 and labels_b with the loss 3, mixed_loss gives 7.00 "
        "(that is the loss of class 2, which lies between the labels 0 and 3); it should be 2.50.",
        "With alpha=0 mixup gives lam = 1.000, and other images; lam should be 1, and nothing mixed.",
        "With lam = 0.75 the accuracy is 1.00 if the model says labels_a for all images, and 1.00 if it "
        "says labels_b (a prediction of either label counts as a whole hit); it should be 0.75 and 0.25.",
        "With lam = 0.75 the accuracy is 75.00 if the model says labels_a for all images, and 25.00 if it"
        " says labels_b; it should be 0.75 and 0.25.",
        "Where labels_a have the loss 1, labels_b the loss 4 and lam is 0.75, the loss is 1.00; it should"
        " be 1.75: it is that of labels_a alone.",
        "4 images have the loss 1, and 2 images in another batch the loss 4: the mean over images is 2. "
        "train_one_epoch returns 2.50: that is the mean of the two batches' means; a batch of 2 images "
        "counts as much as one of 4.",
        "4 images have the loss 1, and 2 images in another batch the loss 4: the mean over images is 2. "
        "evaluate returns 1.56: that is the loss of the softmax of the scores; the criterion computes a "
        "softmax itself.",
        "The third of what `evaluate(model, loader, criterion, device)` returned is a tensor of int64 of "
        "shape (2,); it should be a tensor of whole numbers of shape (6,).",
        "What `per_class_accuracy([0, 0, 1], [0, 1, 1], 5)` returned is an array of float64 of shape "
        "(3,); it should be a tensor of floating point numbers of shape (5,).",
        "evaluate gets the test images; it should get the validation images.",
        "Validation is best after epoch 4 of 42; the model is left with the weights of the last one.",
        "Validation is best after epoch 4 of 5; the model is left with the weights of the last one if "
        "stage 2 is not ended early.",
        "In stage 2 the optimizer moves 2 of 56 parameters: the others are frozen.",
        "In stage 2 the optimizer moves 2 of 56 parameters, although all require gradients.",
        "In torchvision's model, `heads.head.bias` and `heads.head.weight` are frozen after "
        "`unfreeze(model, 1)`; they should be trainable.",
        "In torchvision's model, `class_token`, `conv_proj.bias`, `conv_proj.weight` and 39 more are "
        "trainable after `freeze_backbone(model)`; they should be frozen.",
        "Where only the first block is trainable before the call, `head.bias` is frozen after "
        "`freeze_backbone(model)`; it should be trainable.",
        "Before `unfreeze(model, 2)` everything required gradients; after it these do, and should not: "
        "`blocks.0.attn.proj.bias`, `blocks.0.attn.proj.weight`, `blocks.0.attn.qkv.bias` and 21 more; "
        "these do not, and should: `blocks.2.attn.proj.bias`, `blocks.2.attn.proj.weight`.",
        "Before `freeze_backbone(model)` nothing required gradients; after it these do not, and should: "
        "`head.bias`, `head.weight`.",
        "Of the training loss, only the epochs of stage 2 are drawn.",
        "No curve shows the validation loss of all five epochs of a history.",
        "The map is transposed: its rows are the predicted classes, although the axes say otherwise.",
        "labels_a and labels_b are exchanged: labels_a belongs to the images at their own places, which "
        "have the share lam.",
        "With patience=2 and the values NaN, 0.3, 0.4, 0.5, step says True at value 4; it should never.",
        "With patience=2, min_delta=0.05 and the values 0.5, 0.52, 0.56, step never says True; it should "
        "at value 5.",
        "With the values 0.3, 0.6, 0.4 restore leaves those of no one step; it should leave those of step 2.",
        "The class token of a known model attends to the patches (1, 2), (2, 6), (5, 3) and (6, 1), by "
        "row and column; the map is bright at no patch.",
        "What `stratified_split([0, 1], (6, 4), 3)` returned is None; it should be 2 index arrays.",
    ),
    "vit_defects": (
        "`Attention(22, heads=5, dim_head=3)` returned a tensor of shape (1, 1, 22); it should be (1, 6, "
        "22).",
        "`PreNorm(22, fn)` never calls the module that it is given.",
        "The loss_history is not plain: it holds tensors with their graph: append loss.item().",
        "With pool='mean' the scores depend on the class token alone.",
        "Of 9 tokens none is the same for all images; the first one should be: the class token.",
        "The different images that are shown are of the classes “crazing” (1), “rolled-in_scale” (5); "
        "there should be 4 of each class.",
        "With dim_head=128 the scores differ much less than with dim_head=8. Divided by sqrt(dim_head) "
        "they differ about as much.",
    ),
    "": (
        "the file, line 3, column “seed”: it is empty; it should be a whole number.",
        "the file, line 3, column “accuracy”: it is “high”; it should be a number.",
        "What `f(1, 2)` returned is a tuple of 3 values; it should be a whole number.",
        "What `f()` returned is nothing (None); it should be 3 values.",
        "What `f()` returned is a dictionary with 2 keys; it should be a list of values.",
        "The first of what `f()` returned is a tensor of float32 of shape (2,); it should be a tensor of "
        "truth values (bool) of shape (6,).",
    ),
}


@pytest.mark.parametrize(
    ("assignment_id", "message"), [(name, each) for name, messages in SAID.items() for each in messages]
)
def test_a_message_is_told_in_persian(assignment_id: str, message: str) -> None:
    persian = language("fa", [REFERENCE / assignment_id / FOLDER] if assignment_id else [])
    assert english_left(message, persian) == []
    assert all(piece.translated for piece in persian.pieces(message))
