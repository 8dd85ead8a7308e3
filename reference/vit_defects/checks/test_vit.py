"""ViT, alone: the Transformer is a fake, and the tokens that reach it are looked at."""

import contextlib
from dataclasses import replace

import pytest
import torch

from grader.kit import AffineFake, Cause, Mismatch, named, same
from grader.kit.transformers import fields

pytestmark = pytest.mark.component("ViT")

IDENTITY = AffineFake()
DRAWS = 6  # of dropout: every value is dropped in some of them


def built(student, reference, sizes, transformer=IDENTITY, **changes):
    """The student's ViT around a fake, with weights that are not zero by chance."""
    model = reference.oracle.vit_around(student, transformer, {**sizes.options, **changes})
    model.randomize(0.3)
    return model


def pictures(student, sizes, count=2):
    """Random images, (count, channels, side, side)."""
    return student.tensor(count, sizes.channels, sizes.side, sizes.side)


def square(student, sizes):
    """A random patch, (1, channels, patch, patch)."""
    return student.tensor(1, sizes.channels, sizes.patch, sizes.patch)


def filled(patch, sizes):
    """An image of equal patches."""
    times = sizes.side // sizes.patch
    return patch.repeat(1, 1, times, times)


def scores(model, reference, images, sizes, **how):
    """One score per class for each image, (batch, classes)."""
    with pooling_named(model, reference, images, **how):
        return model(images, shape=(len(images), sizes.classes), **how)


@contextlib.contextmanager
def pooling_named(model, reference, images, **how):
    """Name the mistake if there are scores for each token instead of each image."""
    try:
        yield
    except Mismatch as error:
        if error.cause is not Cause.WRONG_SHAPE or model(images, **how).ndim != 3:
            raise
        raise reference.named("tokens_not_pooled", seen=error) from None


def tokens(model, reference, images, sizes, **how):
    """What reaches the Transformer, (batch, tokens, dim)."""
    [found] = tokens_each_time(model, reference, images, sizes, times=1, **how)
    return found


def tokens_each_time(model, reference, images, sizes, times, **how):
    """What reaches the Transformer in each of several calls, (batch, tokens, dim)."""
    shown = images if len(images) > 1 else images.repeat(2, 1, 1, 1)  # a batch of one is another check's
    with pooling_named(model, reference, shown, **how):
        outputs = model.repeated(shown, times=times, shape=(len(shown), sizes.classes), **how)
        return [tokens_in(model.calls[0][1], shown, sizes)[: len(images)] for _ in outputs]


def tokens_in(found, images, sizes):
    """What reached the Transformer, if it has the shape (batch, tokens, dim)."""
    if found.ndim != 3 or found.shape[0] != len(images) or found.shape[-1] != sizes.dim:
        raise Mismatch(
            f"The Transformer receives a tensor of shape {tuple(found.shape)}; it should be "
            f"(batch, tokens, dim), here ({len(images)}, {sizes.patches + 1}, {sizes.dim})."
        )
    return found


@pytest.mark.shows(
    "vit_sees_the_whole_image",
    "vit_has_a_class_token",
    "vit_pools_as_it_is_told",
    "vit_returns_no_probabilities",
    "vit_gives_the_transformer_its_sizes",
    "vit_drops_out",
)
@pytest.mark.explains("vit_returns_logits")
@pytest.mark.weight(1)
def test_vit_takes_images_of_any_size(student, reference):
    """ViT works for any image_size, patch_size and number of channels that it is constructed with."""
    odd = reference.oracle.ODD
    try:
        model, images = built(student, reference, odd), pictures(student, odd)
        found = model(images)
        if found.ndim == 2 and found.shape[1] != odd.classes:
            model(images, shape=(len(images), odd.classes))
    except Mismatch as error:
        mistake = reference.oracle.size_in_the_code(student)
        if mistake is None:
            raise
        raise reference.named(mistake, seen=error) from None
    if found.shape == (2, odd.classes) and model(images[:1]).shape == found.shape[1:]:
        raise reference.named("batch_axis_squeezed")
    large = reference.oracle.LARGE  # of positions for the handout's images, a part serves smaller ones
    try:
        built(student, reference, large)(pictures(student, large))
    except Mismatch as error:
        raise reference.named("image_size_fixed", seen=error) from None
    if not reference.oracle.tokens_follow_the_size(student):
        raise reference.named("image_size_fixed")


@pytest.mark.shows("vit_sees_the_whole_image")
@pytest.mark.explains("vit_returns_logits")
@pytest.mark.weight(2)
def test_vit_cuts_patches(student, reference):
    """Every token sees exactly one patch of the image, in all its channels."""
    sizes = reference.oracle.doable(student)
    model = built(student, reference, sizes)
    image = pictures(student, sizes)

    def is_steady(images):
        return same(*(tokens(model, reference, images, sizes) for _ in range(2)))

    if not is_steady(image):
        alike = filled(square(student, sizes), sizes)  # whose patches may be exchanged and nobody sees it
        raise reference.named("patches_shuffled" if is_steady(alike) else "random_in_forward")
    found = fields(lambda images: tokens(model, reference, images, sizes), image[0])
    if not found.images_apart:
        raise reference.named("images_mixed")
    if not bool(found.seen.any(dim=0).any(dim=(1, 2)).all()):
        raise reference.named("channels_lost")
    if sizes.channels > 1 and same(
        *(tokens(model, reference, each, sizes) for each in (image, image.flip(1)))
    ):
        raise reference.named("channels_averaged")
    if not bool(found.pixels.any(dim=0).all()):
        raise reference.named("patches_lost")
    if found.are_patches(sizes.patch):
        require_many_numbers(student, reference, sizes, model)
        require_usual_sizes(student, reference, sizes)
        return
    if not (found.overlap() and found.are_windows()):
        raise reference.named("patches_mixed")
    straight = reference.oracle.is_affine(lambda images: tokens(model, reference, images, sizes), image)
    policy = "overlapping_patches" if straight else "convolutional_stem"
    student.policy(policy, POLICIES[policy], "Cut the image into patches that do not overlap.")


FEWEST_NUMBERS = 3  # of a patch that its token tells apart


def require_many_numbers(student, reference, sizes, model):
    """Fail a ViT whose tokens depend on a sum or two of the numbers of their patches.

    Raises:
        Mismatch: The slopes of a token by its patch have a lower rank.
    """
    image = pictures(student, sizes, 1)
    corner = image[:, :, : sizes.patch, : sizes.patch]
    moves = 0.05 * torch.eye(corner.numel()).view(-1, *corner.shape[1:])
    moved = image.repeat(len(moves), 1, 1, 1)
    moved[:, :, : sizes.patch, : sizes.patch] += moves
    found = tokens(model, reference, torch.cat([image, moved]), sizes)
    slopes = found[1:] - found[:1]
    # wherever the class token stands: the patch is seen by one token
    own = slopes[:, slopes.abs().amax(dim=(0, 2)).argmax()]
    strengths = torch.linalg.svdvals(own.double())
    rank = int((strengths > 0.02 * strengths[0]).sum())
    if rank < min(FEWEST_NUMBERS, sizes.dim, corner.numel()):
        raise Mismatch(
            f"A patch has {corner.numel()} numbers; its token depends on {rank} of their sums alone.",
            hint="The projection takes each number by itself: nn.Linear(channels * patch_size**2, dim).",
            look_for="mean() | sum() | Linear(_, dim)",
        )


def require_usual_sizes(student, reference, sizes):
    """The same for as many patches as in a training: each has a token of its own, and a place.

    Raises:
        Mismatch: It is right for few patches only.
    """
    usual = replace(sizes, side=28, patch=4, dim=64)
    model = built(student, reference, usual)
    count, across = usual.patches, usual.side // usual.patch
    image = pictures(student, usual, 1)
    changed = image.repeat(count, 1, 1, 1)
    for place in range(count):
        row, column = (usual.patch * each for each in divmod(place, across))
        changed[place, :, row : row + usual.patch, column : column + usual.patch] += square(student, usual)[0]
    found = tokens(model, reference, torch.cat([image, changed]), usual)
    moved = (found[1:] - found[:1]).abs().amax(dim=-1) > 1e-5
    # what no image moves, the class token, may stand anywhere here
    if not torch.equal(moved[:, moved.any(dim=0)], torch.eye(count, dtype=torch.bool)):
        raise Mismatch(
            f"For images of {usual.side} x {usual.side} and patches of {usual.patch}, not each patch has a "
            f"token of its own; for images of {sizes.side} x {sizes.side} it has.",
            hint="Every size goes through the same steps.",
        )
    if not tells_places_apart(student, reference, usual) and tells_places_apart(student, reference, sizes):
        raise Mismatch(
            f"For images of {usual.side} x {usual.side}, equal patches at two places make equal tokens.",
            hint="Each of the patches has a position of its own.",
        )


def tells_places_apart(student, reference, sizes):
    """Whether equal patches make another token at each place."""
    model = built(student, reference, sizes)
    found = tokens(model, reference, filled(square(student, sizes), sizes), sizes)[0, -sizes.patches :]
    distances = (found[:, None] - found[None]).abs().amax(dim=-1)
    return not bool((distances + found.new_ones(len(found)).diag() < 1e-5).any())


def kept_with_the_weights(student, reference, sizes, model, images):
    """Whether another ViT with the same weights and buffers makes the same tokens."""
    other = built(student, reference, sizes)
    other.set_weights(model.weights())
    return same(tokens(other, reference, images, sizes), tokens(model, reference, images, sizes))


POLICIES = {
    "overlapping_patches": "The patches overlap; the handout asks for patches that do not.",
    "convolutional_stem": "Convolutions see more than one patch; the handout asks for one linear projection.",
    "dropout_before_positions": "emb_dropout drops the tokens before the positions are added, so that no "
    "position is ever dropped; the template drops after they are added.",
    "log_probabilities_returned": "ViT returns logarithms of probabilities; the template asks for the scores "
    "before any softmax, because cross_entropy applies a log_softmax itself.",
    "mean_without_class_token": "With pool='mean' the class token is left out of the mean; the template asks "
    "for the mean of all tokens.",
    "fixed_positions": "The positions are fixed; the handout asks for learnable ones.",
}


@pytest.mark.weight(1)
@pytest.mark.shows("vit_sees_the_whole_image")
def test_vit_projects_all_patches_alike(student, reference):
    """One projection with the same weights makes tokens of all patches."""
    sizes = reference.oracle.doable(student)
    model = built(student, reference, sizes)
    first, second = (filled(square(student, sizes), sizes) for _ in range(2))
    moved = tokens(model, reference, second, sizes) - tokens(model, reference, first, sizes)
    rows = moved[0][moved[0].abs().amax(dim=-1) > 1e-5]
    # a normalization after the positions makes them differ too, but takes no weights for every patch
    projections = sizes.patches * sizes.dim * sizes.channels * sizes.patch**2
    if model.parameter_count >= projections and not same(rows, rows[:1].expand_as(rows), tolerance=1e-3):
        raise reference.named("projection_per_patch")


@pytest.mark.because("vit_cuts_patches")
@pytest.mark.weight(1)
@pytest.mark.shows("vit_has_a_class_token", "vit_pools_as_it_is_told")
def test_vit_puts_a_class_token_in_front(student, reference):
    """A learnable class token stands in front of the patches: number of patches + 1 tokens."""
    sizes = reference.oracle.doable(student)
    model, images = built(student, reference, sizes), pictures(student, sizes)
    found = tokens(model, reference, images, sizes)
    fixed = (found[0] - found[1]).abs().amax(dim=-1) < 1e-6
    if not fixed.any():
        raise reference.named("no_class_token")
    if found.shape[1] == 2 * (sizes.patches + 1) and int(fixed.sum()) == sizes.patches + 2:
        raise reference.named("positions_as_tokens")
    if found.shape[1] == sizes.patches + 2 or int(fixed.sum()) > 1:
        raise Mismatch(
            f"{int(fixed.sum())} of {found.shape[1]} tokens do not depend on the image; only the class "
            f"token should not, in front of {sizes.patches} patches.",
            hint="Concatenate the class token and the patches along the token axis, before the positions.",
            diagnosis="class_token_count",
        )
    if not fixed[0]:
        raise reference.named("class_token_last" if fixed[-1] else "no_class_token")
    if not reference.oracle.moves_first_only(model, lambda: tokens(model, reference, images, sizes)):
        raise reference.named("class_token_not_learned")


@pytest.mark.because("vit_cuts_patches")
@pytest.mark.weight(1)
@pytest.mark.explains("vit_tells_places_apart")
def test_vit_adds_positions(student, reference):
    """A position is added to every token, so that equal patches at different places differ."""
    sizes = reference.oracle.doable(student)
    model = built(student, reference, sizes)
    alike = filled(square(student, sizes), sizes)

    def every(images):
        return tokens(model, reference, images, sizes)

    found = every(alike)[0, -sizes.patches :]
    distances = (found[:, None] - found[None]).abs().amax(dim=-1)
    # numbers first: two of them may be nearly equal by chance
    if float(distances.amax()) > 1e-4 and float((found[:, None] - found[None]).std(dim=-1).amax()) < 1e-5:
        raise reference.named("positions_are_numbers")
    if bool((distances + 10 * distances.new_ones(len(found)).diag() < 1e-5).any()):
        raise reference.named("positions_not_added" if has_positions(model, sizes) else "no_positions")
    if reference.oracle.are_concatenated(every(pictures(student, sizes))[:, -sizes.patches :], found):
        raise reference.named("positions_concatenated")
    if reference.oracle.positions_multiply(model, every, pictures(student, sizes)):
        raise reference.named("positions_multiplied")
    places = reference.oracle.learned_places(model, lambda: every(alike)[0, -sizes.patches :])
    if 0 < len(places) < sizes.patches:
        raise reference.named("position_missing")
    if not places:
        if not kept_with_the_weights(student, reference, sizes, model, alike):
            raise reference.named("positions_not_kept")
        student.policy("fixed_positions", POLICIES["fixed_positions"], "Make them an nn.Parameter.")


def has_positions(model, sizes):
    """Whether the model holds a learned number for each token, with or without the class token."""
    shapes = {(sizes.patches, sizes.dim), (sizes.patches + 1, sizes.dim)}
    return any(tuple(value.shape[-2:]) in shapes for value in model.weights().values())


@pytest.mark.because(
    "vit_cuts_patches", "vit_puts_a_class_token_in_front", "vit_returns_scores_not_probabilities"
)
@pytest.mark.weight(1)
@pytest.mark.parametrize("pool", ["cls", "mean"])
@pytest.mark.shows("vit_pools_as_it_is_told")
def test_vit_pools(student, reference, pool):
    """pool='cls' classifies the first token after the Transformer, pool='mean' the mean of all tokens."""
    # rolling moves the last patches to the front, so that what is read shows in what the scores depend on
    sizes = reference.oracle.doable(student)
    model = built(student, reference, sizes, AffineFake(roll=2), pool=pool)
    images = pictures(student, sizes, 3)
    received = tokens(model, reference, images, sizes)
    if len(model.calls) > 1 and model.constructions("Transformer"):
        raise reference.named("transformer_twice")
    answers = scores(model, reference, images, sizes)
    if not same(model(images[1:]), answers[1:]):
        raise reference.named("images_mixed")
    verdict = reference.oracle.pooled_by(model, received.roll(2 * int(model.rolls), dims=1), answers)
    if verdict == pool:
        at_rate = lambda rate: built(student, reference, sizes, pool=pool, emb_dropout=rate)  # noqa: E731
        reference.oracle.require_one_function(student, model, images, at_rate)
        require_encoder(student, reference, sizes, pool)
        return
    if (pool, verdict) == ("mean", "mean of the patches"):
        student.policy(
            "mean_without_class_token",
            POLICIES["mean_without_class_token"],
            "x.mean(dim=1) over all tokens, the class token among them.",
            look_for="_[:, 1:], mean()",
        )
        return
    if (pool, verdict) in WRONG_POOLS:
        raise reference.named(WRONG_POOLS[pool, verdict])
    if model.rolls and reference.oracle.pooled_by(model, received, answers) == "cls":
        raise reference.named("transformer_not_used")
    if verdict:
        raise reference.named("wrong_token_read")
    reference.oracle.require_pool(
        student, reference, pool, model, lambda: built(student, reference, sizes, pool=pool)
    )
    require_encoder(student, reference, sizes, pool)


def require_encoder(student, reference, sizes, pool):
    """Fail a ViT in which something goes around its Transformer to the scores.

    Raises:
        Mismatch: Where the Transformer gives the same for all images, the scores differ.
    """
    model = built(student, reference, sizes, AffineFake(scale=(0.0,), shift=(0.3,)), pool=pool)
    if not model.constructions("Transformer"):
        return
    found = scores(model, reference, pictures(student, sizes, 4), sizes)
    if not same(found, found[:1].expand_as(found)):
        raise Mismatch(
            "Where the Transformer gives the same for all images, the scores still differ: something of the "
            "images goes around it.",
            hint="After x = self.transformer(x), the head works on that x alone.",
            look_for="head() | mean()",
        )


WRONG_POOLS = {
    ("cls", "mean"): "cls_pooling_ignored",
    ("cls", "mean of the patches"): "cls_pooling_ignored",
    ("mean", "cls"): "mean_pooling_ignored",
    ("mean", "max"): "max_pooling",
    ("cls", "max"): "max_pooling",
}


@pytest.mark.weight(1)
@pytest.mark.shows("vit_returns_no_probabilities")
def test_vit_returns_scores_not_probabilities(student, reference):
    """ViT returns the scores as they are; the loss function applies the softmax."""
    sizes = reference.oracle.doable(student)
    model, images = built(student, reference, sizes, pool="mean"), 3 * pictures(student, sizes, 6)
    trained = {parameter.name for parameter in model.parameters}
    weights = {name: value for name, value in model.weights().items() if name in trained}
    every = []
    for factor in (1, -1, 4, -4):  # scores of one sign, or in one range, by chance are so only once
        model.set_weights({name: factor * value for name, value in weights.items()})
        every.append(scores(model, reference, images, sizes))
    every = torch.stack(every)
    positive = bool((every >= 0).all())
    if positive and same(every.sum(dim=2), torch.ones(4, 6)):
        raise reference.named("softmax_output")
    if positive and same(every.sum(dim=1), torch.ones(4, sizes.classes)):
        raise reference.named("softmax_over_batch")
    if positive and bool((every <= 1).all()):
        raise reference.named("sigmoid_output")
    if positive:
        raise reference.named("relu_output")
    model.set_weights({name: 30 * value for name, value in weights.items()})
    if bool((scores(model, reference, images, sizes).abs() <= 1).all()):
        raise Mismatch(
            "However large the weights of ViT are, its scores stay between -1 and 1.",
            hint="Nothing after the last linear layer: the loss function applies the softmax.",
            look_for="tanh() | sigmoid() | softmax() | Tanh() | Sigmoid() | Softmax()",
        )
    if same(every.exp().sum(dim=2), torch.ones(4, 6)) and reference.oracle.trains_by_cross_entropy(student):
        student.policy(
            "log_probabilities_returned",
            POLICIES["log_probabilities_returned"],
            "Return what the head gives, without log_softmax.",
            look_for="log_softmax() | LogSoftmax()",
        )


@pytest.mark.weight(1)
@pytest.mark.shows("vit_gives_the_transformer_its_sizes")
def test_vit_hands_its_sizes_on(student, reference):
    """ViT hands dim, depth, heads, dim_head, mlp_dim and dropout on to one Transformer."""
    sizes = reference.oracle.doable(student)
    options = {**sizes.options, "depth": 3, "dropout": 0.25}
    model = reference.oracle.vit_around(student, IDENTITY, options)
    scores(model, reference, pictures(student, sizes), sizes)
    given = model.constructions("Transformer")
    if not given:
        reference.oracle.prove_inline_vit(student, reference, sizes.options, pictures(student, sizes))
        return
    if len(model.calls) > 1:
        raise reference.named("transformer_twice")
    handed = {name: options[name] for name in ("dim", "depth", "heads", "dim_head", "mlp_dim", "dropout")}
    wrong = reference.oracle.not_handed_on("Transformer", handed, given[0])
    if {"heads", "dim_head"} <= set(wrong) and given[0].get("heads") == options["dim_head"]:
        raise reference.named("sizes_swapped")
    if wrong == ["dropout"]:
        raise reference.named("dropout_lost")
    for name in wrong:
        raise reference.oracle.ignored_size("ViT", "Transformer", name, handed[name], given[0])


@pytest.mark.because("vit_cuts_patches")
@pytest.mark.weight(1)
@pytest.mark.shows("vit_drops_out")
def test_vit_drops_out_in_training_only(student, reference):
    """emb_dropout acts on the tokens in training, at the rate that is asked for, and not in evaluation."""

    sizes = reference.oracle.doable(student)

    models = {}

    def tokens_of(rate):
        model = reference.oracle.vit_around(student, IDENTITY, {**sizes.options, "emb_dropout": rate})
        models[rate] = model
        return lambda images, **how: tokens_each_time(model, reference, images, sizes, **how)

    fault = reference.oracle.dropout_fault(tokens_of, pictures(student, sizes))
    if fault:
        raise reference.named("random_in_forward" if fault == "unsteady" else f"embedding_dropout_{fault}")
    model = models[0.5]
    model.randomize(0.3)  # positions may be zeros to begin with
    drawn = tokens_each_time(model, reference, pictures(student, sizes), sizes, times=DRAWS, train=True)
    if reference.oracle.drops_before_positions(torch.stack(drawn)[:, :, -sizes.patches :]):
        student.policy(
            "dropout_before_positions",
            POLICIES["dropout_before_positions"],
            "x = self.dropout(x + positions).",
        )


@pytest.mark.because("vit_adds_positions")
@pytest.mark.weight(1)
def test_vit_has_the_parameters_of_its_parts(student, reference):
    """Besides its Transformer, ViT has a patch projection, a class token, positions and a head, all used."""
    sizes = replace(reference.oracle.doable(student), channels=1)
    model = built(student, reference, sizes)
    cotangent = student.tensor(2, sizes.classes)
    found = reference.oracle.gradients_that_arrive(model, pictures(student, sizes), cotangent)
    least = sizes.dim * sizes.patch**2 + sizes.dim * sizes.classes
    if model.parameter_count < least:
        raise Mismatch(
            f"Besides its Transformer, ViT has {model.parameter_count} parameters; the patch projection and "
            f"the head alone should have {least} (image_size={sizes.side}, patch_size={sizes.patch}, "
            f"channels=1, dim={sizes.dim}, num_classes={sizes.classes}).",
            hint="Are all layers attributes of the model, and all learned tensors nn.Parameter?",
            diagnosis="parameter_count",
        )
    if found.missing:
        raise Mismatch(
            f"The parameter {named(found.missing[0])} receives no gradient: it is not used, or cut off.",
            hint="A layer that forward never calls still costs memory; one under no_grad is never trained.",
            diagnosis="unused_parameter",
        )
