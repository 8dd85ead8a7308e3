"""ViT, alone: the Transformer is a stand-in, and the tokens that reach it are looked at."""

import pytest
import torch

from grader.kit import Mismatch, StandIn, named, same
from grader.kit.transformers import fields

pytestmark = pytest.mark.component("ViT")

# 3 x 3 patches of 5 x 5 pixels, 2 channels: nothing is as in the handout's default
SIDE, CHANNELS, PATCHES, CLASSES, DIM = 15, 2, 9, 7, 22
OPTIONS = {
    "image_size": SIDE,
    "patch_size": 5,
    "num_classes": CLASSES,
    "dim": DIM,
    "depth": 2,
    "heads": 5,
    "mlp_dim": 31,
    "channels": CHANNELS,
    "dim_head": 6,
}
IDENTITY = StandIn()


def built(student, reference, transformer=IDENTITY, **changes):
    """The student's ViT around a stand-in, with weights that are not zero by chance."""
    model = reference.oracle.vit_around(student, transformer, {**OPTIONS, **changes})
    model.randomize(0.3)
    return model


def pictures(student, count=2):
    """Random images, (count, 2, 15, 15)."""
    return student.tensor(count, CHANNELS, SIDE, SIDE)


def tokens(model, images, **how):
    """What reaches the Transformer, (batch, tokens, dim)."""
    model(images, shape=(len(images), CLASSES), **how)
    found = model.calls[0][1]
    if found.ndim != 3 or found.shape[0] != len(images) or found.shape[-1] != DIM:
        raise Mismatch(
            f"The Transformer receives a tensor of shape {tuple(found.shape)}; it should be "
            f"(batch, tokens, dim), here ({len(images)}, {PATCHES + 1}, {DIM})."
        )
    return found


@pytest.mark.explains("vit_returns_logits")
@pytest.mark.weight(2)
def test_vit_cuts_patches(student, reference):
    """Every token sees exactly one patch of the image, in all its channels."""
    model = built(student, reference)
    image = pictures(student)
    if not same(tokens(model, image), tokens(model, image)):
        raise reference.named("random_in_forward")
    found = fields(lambda images: tokens(model, images), image[0])
    if not found.images_apart:
        raise reference.named("images_mixed")
    if not bool(found.seen.any(dim=0).any(dim=(1, 2)).all()):
        raise reference.named("channels_lost")
    if not bool(found.pixels.any(dim=0).all()):
        raise reference.named("patches_lost")
    if found.are_patches(5):
        return
    if not (found.overlap() and found.are_windows()):
        raise reference.named("patches_mixed")
    straight = reference.oracle.is_affine(lambda images: tokens(model, images), image)
    policy = "overlapping_patches" if straight else "convolutional_stem"
    student.policy(policy, POLICIES[policy], "Cut the image into patches that do not overlap.")


POLICIES = {
    "overlapping_patches": "The patches overlap; the handout asks for patches that do not.",
    "convolutional_stem": "Convolutions see more than one patch; the handout asks for one linear projection.",
    "fixed_positions": "The positions are fixed; the handout asks for learnable ones.",
}


@pytest.mark.weight(1)
def test_vit_projects_all_patches_alike(student, reference):
    """One projection with the same weights makes tokens of all patches."""
    model = built(student, reference)
    first, second = pictures(student, 1)[:, :, :5, :5], pictures(student, 1)[:, :, :5, :5]
    moved = tokens(model, second.repeat(1, 1, 3, 3)) - tokens(model, first.repeat(1, 1, 3, 3))
    rows = moved[0][moved[0].abs().amax(dim=-1) > 1e-5]
    # a normalization after the positions makes them differ too, but takes no weights for every patch
    projections = PATCHES * DIM * CHANNELS * 25
    if model.parameter_count >= projections and not same(rows, rows[:1].expand_as(rows), tolerance=1e-3):
        raise reference.named("projection_per_patch")


@pytest.mark.because("vit_cuts_patches")
@pytest.mark.weight(1)
def test_vit_puts_a_class_token_in_front(student, reference):
    """A learnable class token stands in front of the patches: number of patches + 1 tokens."""
    model, images = built(student, reference), pictures(student)
    found = tokens(model, images)
    fixed = (found[0] - found[1]).abs().amax(dim=-1) < 1e-6
    if not fixed.any():
        raise reference.named("no_class_token")
    if found.shape[1] == PATCHES + 2 or int(fixed.sum()) > 1:
        raise Mismatch(
            f"{int(fixed.sum())} of {found.shape[1]} tokens do not depend on the image; only the class token "
            f"should be so, in front of {PATCHES} patches.",
            hint="Concatenate the class token and the patches along the token axis, before the positions.",
            diagnosis="class_token_count",
        )
    if not fixed[0]:
        raise reference.named("class_token_last" if fixed[-1] else "no_class_token")
    if not reference.oracle.moves_first_only(model, lambda: tokens(model, images)):
        raise reference.named("class_token_not_learned")


@pytest.mark.because("vit_cuts_patches")
@pytest.mark.weight(1)
def test_vit_adds_positions(student, reference):
    """A position is added to every token, so that equal patches at different places differ."""
    model = built(student, reference)
    patch = pictures(student, 1)[:, :, :5, :5]
    alike = patch.repeat(1, 1, 3, 3)
    found = tokens(model, alike)[0, -PATCHES:]
    distances = (found[:, None] - found[None]).abs().amax(dim=-1)
    if bool((distances + 10 * distances.new_ones(len(found)).diag() < 1e-5).any()):
        raise reference.named("no_positions")
    if float((found[:, None] - found[None]).std(dim=-1).amax()) < 1e-5:
        raise reference.named("positions_are_numbers")
    if reference.oracle.are_concatenated(tokens(model, pictures(student))[:, -PATCHES:], found):
        raise reference.named("positions_concatenated")
    if reference.oracle.positions_multiply(model, lambda images: tokens(model, images), pictures(student)):
        raise reference.named("positions_multiplied")
    places = reference.oracle.learned_places(model, lambda: tokens(model, alike)[0, -PATCHES:])
    if 0 < len(places) < PATCHES:
        raise reference.named("position_missing")
    if not places:
        student.policy("fixed_positions", POLICIES["fixed_positions"], "Make them an nn.Parameter.")


@pytest.mark.because(
    "vit_cuts_patches", "vit_puts_a_class_token_in_front", "vit_returns_scores_not_probabilities"
)
@pytest.mark.weight(1)
@pytest.mark.parametrize("pool", ["cls", "mean"])
def test_vit_pools(student, reference, pool):
    """pool='cls' classifies the first token after the Transformer, pool='mean' the mean of all tokens."""
    # rolling moves the last patches to the front, so that what is read shows in what the scores depend on
    model = built(student, reference, StandIn(roll=2), pool=pool)
    images = pictures(student)
    received = tokens(model, images)
    if len(model.calls) > 1 and model.constructions("Transformer"):
        raise reference.named("transformer_twice")
    scores = model(images, shape=(2, CLASSES))
    if not same(model(images[1:]), scores[1:]):
        raise reference.named("images_mixed")
    verdict = reference.oracle.pooled_by(model, received.roll(2 * int(model.rolls), dims=1), scores)
    if verdict == pool:
        return
    if (pool, verdict) in WRONG_POOLS:
        raise reference.named(WRONG_POOLS[pool, verdict])
    if model.rolls and reference.oracle.pooled_by(model, received, scores) == "cls":
        raise reference.named("transformer_not_used")
    if verdict:
        raise reference.named("wrong_token_read")
    reference.oracle.require_pool(
        student, reference, pool, model, lambda: built(student, reference, pool=pool)
    )


WRONG_POOLS = {
    ("cls", "mean"): "cls_pooling_ignored",
    ("mean", "cls"): "mean_pooling_ignored",
    ("mean", "max"): "max_pooling",
    ("cls", "max"): "max_pooling",
}


@pytest.mark.weight(1)
def test_vit_returns_scores_not_probabilities(student, reference):
    """ViT returns the scores as they are; the loss function applies the softmax."""
    model, images = built(student, reference, pool="mean"), 3 * pictures(student, 6)
    trained = {parameter.name for parameter in model.parameters}
    weights = {name: value for name, value in model.weights().items() if name in trained}
    scores = []
    for factor in (1, -1, 4, -4):  # scores of one sign, or in one range, by chance are so only once
        model.set_weights({name: factor * value for name, value in weights.items()})
        scores.append(model(images, shape=(6, CLASSES)))
    scores = torch.stack(scores)
    positive = bool((scores >= 0).all())
    if positive and same(scores.sum(dim=2), torch.ones(4, 6)):
        raise reference.named("softmax_output")
    if positive and same(scores.sum(dim=1), torch.ones(4, CLASSES)):
        raise reference.named("softmax_over_batch")
    if positive and bool((scores <= 1).all()):
        raise reference.named("sigmoid_output")
    if positive:
        raise reference.named("relu_output")


@pytest.mark.weight(1)
def test_vit_hands_its_sizes_on(student, reference):
    """ViT hands dim, depth, heads, dim_head, mlp_dim and dropout on to one Transformer."""
    options = {**OPTIONS, "depth": 3, "dropout": 0.25}
    model = reference.oracle.vit_around(student, IDENTITY, options)
    model(pictures(student), shape=(2, CLASSES))
    given = model.constructions("Transformer")
    if not given:
        reference.oracle.prove_inline_vit(student, reference, OPTIONS, pictures(student))
        return
    if len(model.calls) > 1:
        raise reference.named("transformer_twice")
    sizes = {name: options[name] for name in ("dim", "depth", "heads", "dim_head", "mlp_dim", "dropout")}
    wrong = reference.oracle.not_handed_on("Transformer", sizes, given[0])
    if {"heads", "dim_head"} <= set(wrong) and given[0].get("heads") == options["dim_head"]:
        raise reference.named("sizes_swapped")
    if wrong == ["dropout"]:
        raise reference.named("dropout_lost")
    for name in wrong:
        raise reference.oracle.ignored_size("ViT", "Transformer", name, sizes[name], given[0])


@pytest.mark.because("vit_cuts_patches")
@pytest.mark.weight(1)
def test_vit_drops_out_in_training_only(student, reference):
    """emb_dropout acts on the tokens in training, at the rate that is asked for, and not in evaluation."""

    def tokens_of(rate):
        model = reference.oracle.vit_around(student, IDENTITY, {**OPTIONS, "emb_dropout": rate})
        return lambda images, train=False: tokens(model, images, train=train)

    fault = reference.oracle.dropout_fault(tokens_of, pictures(student))
    if fault:
        raise reference.named(f"embedding_dropout_{fault}")


@pytest.mark.weight(1)
def test_vit_has_the_parameters_of_its_parts(student, reference):
    """Besides its Transformer, ViT has a patch projection, a class token, positions and a head, all used."""
    model = reference.oracle.vit_around(student, IDENTITY, {**OPTIONS, "channels": 1})
    model.randomize(0.3)
    found = model.gradients(student.tensor(2, 1, SIDE, SIDE), student.tensor(2, CLASSES))
    least = DIM * 25 + DIM * CLASSES
    if model.parameter_count < least:
        raise Mismatch(
            f"Besides its Transformer, ViT has {model.parameter_count} parameters; the patch projection and "
            f"the head alone should have {least} (image_size=15, patch_size=5, channels=1, dim=22, "
            "num_classes=7).",
            hint="Are all layers attributes of the model, and all learned tensors nn.Parameter?",
            diagnosis="parameter_count",
        )
    if found.missing:
        raise Mismatch(
            f"The parameter {named(found.missing[0])} receives no gradient: it is not used, or cut off.",
            hint="A layer that forward never calls still costs memory; one behind no_grad is never trained.",
            diagnosis="unused_parameter",
        )
