"""The public checks: students have them, and run them on their own machine as often as they like.

Each asks one question. The first line of its docstring is what the student reads.
"""

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from grader.kit import (
    Fake,
    Library,
    Mismatch,
    batches,
    classes_named,
    curves,
    cutmix_of,
    heat_maps,
    mixup_of,
    numbered_images,
)

CPU = torch.device("cpu")
COUNTS = (23, 17, 31, 12)  # images of each class, for the split
SIZES = (7, 2, 3)  # of which each part should get so many
DRAWS = "default_rng() | RandomState() | seed() | Random() | Generator() | manual_seed()"
DRAWN_ELSEWHERE = (
    "randperm() | randint() | torch.rand() | np.random.beta() | np.random.permutation() | np.random.randint()"
)

# --- the split --------------------------------------------------------------------------------------------


@pytest.mark.component("stratified_split")
def test_split_has_its_sizes(student):
    """Each part has as many images as were asked for."""
    parts = student.call("stratified_split", [0, 1] * 10, (6, 4), 3).returned.items(2, "index arrays")
    for number, (part, size) in enumerate(zip(parts, (12, 8), strict=True)):
        found = len(part.array(None, whole=True))
        if found != size:
            raise Mismatch(
                f"For two classes of 10 images and per_class=(6, 4), part {number} has {found} indices; it "
                f"should have {size}.",
                hint="Take per_class[k] images of every class as they are: no share is needed.",
                look_for="int() | round(), _ // sum() | _ / sum()",
            )


def split_labels(student):
    """Shuffled labels of classes of different sizes."""
    labels = np.repeat(np.arange(len(COUNTS)), COUNTS)
    return labels[torch.randperm(len(labels), generator=student.random).numpy()]


def split_of(student, labels, seed=5):
    """The parts, as arrays of indices of the labels."""
    found = student.call("stratified_split", labels, SIZES, seed).returned.items(3, "index arrays")
    parts = [part.array(None, whole=True) for part in found]
    if any(len(part) and not (part.min() >= 0 and part.max() < len(labels)) for part in parts):
        raise Mismatch(
            f"For {len(labels)} labels the parts hold numbers that are not between 0 and {len(labels) - 1}.",
            hint="A part holds indices of the labels, not the labels themselves.",
        )
    return parts


@pytest.mark.component("stratified_split")
@pytest.mark.because("split_has_its_sizes")
@pytest.mark.weight(0.25)
def test_split_takes_the_same_from_each_class(student):
    """Each part has exactly per_class images of every class, however large the class is."""
    labels = split_labels(student)
    parts = split_of(student, labels)
    counts = [np.bincount(labels[part], minlength=len(COUNTS)).tolist() for part in parts]
    wrong = [number for number, size in enumerate(SIZES) if set(counts[number]) != {size}]
    if not wrong:
        return
    indices = np.concatenate(parts).tolist()
    if max(indices, default=0) < max(COUNTS) and len(set(indices)) < len(indices):
        raise Mismatch(
            f"For {len(labels)} images no index is above {max(indices)}, and some occur several times: they "
            "count within a class, and point at images of other classes.",
            hint="np.flatnonzero(labels == label) are the indices of a class: shuffle and cut these.",
            look_for="permutation() | arange() | shuffle()",
        )
    number = wrong[0]
    all_fit = [sum(each) for each in counts] == [size * len(COUNTS) for size in SIZES]
    raise Mismatch(
        f"Of classes with {', '.join(map(str, COUNTS))} images, part {number} gets "
        f"{', '.join(map(str, counts[number]))}; with per_class={SIZES} it should get {SIZES[number]} of "
        "each.",
        hint="Shuffle and cut the indices of each class by themselves."
        if all_fit
        else "Take per_class[k] images of every class as they are: no share is needed.",
        look_for="permutation() | shuffle() | randperm() | sample()" if all_fit else "_ // sum() | _ / sum()",
    )


@pytest.mark.component("stratified_split")
@pytest.mark.because("split_has_its_sizes", "split_takes_the_same_from_each_class")
@pytest.mark.weight(0.25)
def test_split_parts_have_no_image_in_common(student):
    """No image is in two parts, or twice in one."""
    indices = np.concatenate(split_of(student, split_labels(student))).tolist()
    shared = len(indices) - len(set(indices))
    if shared:
        raise Mismatch(
            f"Of the {len(indices)} indices in all parts, {shared} are there once more.",
            hint="Begin each part where the one before it ends: at the sum of all counts before it.",
            look_for="_[:_]",
        )


@pytest.mark.component("stratified_split")
@pytest.mark.because("split_has_its_sizes", "split_takes_the_same_from_each_class")
@pytest.mark.weight(0.25)
def test_split_depends_on_its_seed(student):
    """The same seed gives the same parts, and another seed gives others."""
    labels = split_labels(student)
    first, again, *others = (
        [set(part.tolist()) for part in split_of(student, labels, seed)] for seed in (5, 5, 6, 7)
    )
    if first != again:
        raise Mismatch(
            "Two calls with the same labels and the same seed give different parts.",
            hint="Draw everything from one generator: np.random.default_rng(seed).",
            look_for=DRAWS,
        )
    if all(other == first for other in others):
        raise Mismatch(
            "The seeds 5, 6 and 7 give the same parts.",
            hint="Shuffle the indices of each class by a generator that is made with the seed.",
            look_for="flatnonzero() | nonzero() | where()",
        )


@pytest.mark.component("stratified_split")
@pytest.mark.because("split_has_its_sizes")
@pytest.mark.weight(0.25)
def test_split_raises_for_too_few(student):
    """A class that has fewer images than the parts need raises ValueError."""
    labels = np.repeat(np.arange(3), (9, 7, 9))
    try:
        student.call("stratified_split", labels, (5, 3), 1)
    except Mismatch as error:
        if "ValueError" in error.concerns or "ValueError" in error.message:
            return
        raise Mismatch(
            "With per_class=(5, 3) and a class of 7 images another error than ValueError is raised.",
            hint="Compare the number of images with sum(per_class), and raise ValueError.",
            look_for="raise",
        ) from error
    raise Mismatch(
        "With per_class=(5, 3) and a class of 7 images no ValueError is raised.",
        hint="Compare the number of images of each class with sum(per_class).",
        look_for="for",
    )


# --- mixed images -----------------------------------------------------------------------------------------


def _gives_four(student, way):
    images, labels = student.tensor(4, 3, 8, 6), torch.tensor([0, 1, 2, 3])
    generator = Library("numpy.random.default_rng", 1)
    found = student.call(way, images, labels, 1.0, generator).returned.items(
        4, "values: images, two labels, lam"
    )
    found[0].tensor(4, 3, 8, 6)
    for name, each in zip(("labels_a", "labels_b"), found[1:3], strict=True):
        try:
            each.array(4, whole=True)
        except Mismatch as error:
            held = student.attempted(lambda each=each: each.array(4, finite=False))
            if held is None or not np.mod(held, 1).any():
                raise
            raise Mismatch(
                f"{name} holds numbers that are not whole: class 2 and class 4 do not make class 3.",
                hint="Return both rows of labels as they are; the loss weighs them.",
                look_for="_ * labels + _",
            ) from error
    found[3].number(0, 1)


@pytest.mark.component("mixup")
def test_mixup_gives_four_values(student):
    """Mixed images, two rows of labels and a share are returned."""
    _gives_four(student, "mixup")


@pytest.mark.component("cutmix")
def test_cutmix_gives_four_values(student):
    """Mixed images, two rows of labels and a share are returned."""
    _gives_four(student, "cutmix")


@dataclass
class Mixed:
    """What a mixing function was given, and what it gave.

    Attributes:
        first, second: labels_a and labels_b, as arrays.
        outcome: Of the call.
    """

    images: Any
    labels: Any
    mixed: Any
    first: Any
    second: Any
    lam: float
    outcome: Any


def mixed_by(student, way, seed, alpha=1.0, shape=(6, 3, 12, 20)):
    """One call of a mixing function, with a generator of that seed."""
    images, labels = student.tensor(*shape), torch.arange(shape[0]) + 3
    outcome = student.call(way, images, labels, alpha, Library("numpy.random.default_rng", seed))
    found = outcome.returned.items(4, "values: images, labels_a, labels_b, lam")
    first, second = (each.array(shape[0], whole=True) for each in found[1:3])
    return Mixed(images, labels, found[0].tensor(*shape).float(), first, second, found[3].number(), outcome)


def several(student, way, count=8):
    """Several calls, each with another state of the generator; made once for all checks."""

    def make():
        try:
            return [mixed_by(student, way, student.next_seed() % 2**31) for _ in range(count)]
        except Mismatch as error:
            return error

    found = student.shared(f"mixed by {way}", make)
    if isinstance(found, Mismatch):
        raise found.again()
    return found


def partnered(found):
    """Which images contain something of another one."""
    return found.partners != np.arange(len(found.partners))


def require_labels(one, found, way):
    """Check that the labels are those of the images on either side."""
    moved = partnered(found)
    own, other = one.labels.numpy(), one.labels.numpy()[found.partners]
    if np.array_equal(one.first, own) and np.array_equal(one.second[moved], other[moved]):
        return
    if np.array_equal(one.first[moved], other[moved]) and np.array_equal(one.second[moved], own[moved]):
        outside = (
            "outside the rectangle" if way == "cutmix" else "at their own places, which have the share lam"
        )
        raise Mismatch(
            f"labels_a and labels_b are exchanged: labels_a belongs to the images {outside}.",
            hint="Return labels before labels[order].",
            look_for="return",
        )
    if np.array_equal(one.first, own):
        raise Mismatch(
            "labels_b[i] is not the label of the image that was mixed into image i.",
            hint="Draw one permutation, and use it for the images and for their labels.",
            look_for="labels[_]",
        )
    raise Mismatch(
        "labels_a is not the labels as they were given, although each image stays at its own place.",
        hint="Draw one permutation: labels_a stay in their places, and labels_b follow the permutation.",
        look_for="return",
    )


@pytest.mark.component("mixup")
@pytest.mark.because("mixup_gives_four_values")
@pytest.mark.weight(0.25)
def test_mixup_mixes_each_image_with_another(student):
    """Each image is lam of itself and 1 - lam of another one, by a permutation of the batch."""
    for one in several(student, "mixup"):
        try:
            found = mixup_of(one.mixed, one.images)
        except Mismatch as error:
            raise Mismatch(
                error.message,
                hint="The shares of the two images add up to 1: that of the other one is 1 - lam.",
                look_for="lam * images + _ | _ + lam * images",
            ) from error
        moved = partnered(found)
        try:
            share = found.share
        except Mismatch as error:
            raise Mismatch(
                error.message, hint="Draw one share for the whole batch.", look_for="beta()"
            ) from error
        if moved.any() and abs(share - one.lam) > 1e-3:
            if abs(1 - share - one.lam) < 1e-3:
                raise Mismatch(
                    f"lam is {one.lam:.3f}, which is the share of the other image: images[i] itself, whose "
                    f"label is in labels_a, has {share:.3f}.",
                    hint="lam belongs to images[i], and 1 - lam to images[j].",
                    look_for="(1 - lam) * images + _ | lam * _ + (1 - lam) * images",
                )
            raise Mismatch(f"lam is {one.lam:.3f}, but images[i] has the share {share:.3f} of the result.")
        if len(set(found.partners[moved].tolist())) < moved.sum():
            raise Mismatch(
                "Two images are mixed with the same other one, so that the partners are no permutation.",
                hint="generator.permutation(len(images)) draws every image once.",
                look_for="integers() | randint() | choice()",
            )
    if all(not partnered(mixup_of(one.mixed, one.images)).any() for one in several(student, "mixup")):
        raise Mismatch("No image is changed, whatever the generator's state.")


@pytest.mark.component("mixup")
@pytest.mark.because("mixup_gives_four_values", "mixup_mixes_each_image_with_another")
@pytest.mark.weight(0.25)
def test_mixup_gives_the_labels_of_both(student):
    """labels_a are the labels of the images themselves, labels_b those of the images mixed into them."""
    for one in several(student, "mixup"):
        require_labels(one, mixup_of(one.mixed, one.images), "mixup")


@pytest.mark.component("cutmix")
@pytest.mark.because("cutmix_gives_four_values")
@pytest.mark.weight(0.25)
def test_cutmix_cuts_one_rectangle(student):
    """One rectangle, the same in all images, comes from the same place of another image."""
    moved = False
    for one in several(student, "cutmix"):
        try:
            found = cutmix_of(one.mixed, one.images)
        except Mismatch as error:
            if bool((one.mixed == 0).any()):
                raise Mismatch(
                    "Pixels of the mixed images are 0, and none of the images that were given: nothing of "
                    "another image stands there.",
                    hint="Fill the rectangle from images[order], at the same place.",
                    look_for="mixed",
                ) from error
            same_place = "box is not the same" not in error.message
            raise Mismatch(
                error.message,
                hint="mixed[..., rows, columns] and the other images have the same rows and columns."
                if same_place
                else "Draw one place for the whole batch, before any loop over the images.",
                look_for="flip() | roll(), for" if same_place else "for",
            ) from error
        changed = partnered(found)
        moved = moved or bool(changed.any())
        if len(set(found.partners[changed].tolist())) < changed.sum():
            raise Mismatch(
                "Two images have a rectangle of the same other one, so that the partners are no permutation.",
                hint="Read from the batch, write into a copy; generator.permutation draws the partners.",
                look_for="for, integers() | randint() | choice()",
            )
    if not moved:
        raise Mismatch("No image is changed, whatever the generator's state.")


@pytest.mark.component("cutmix")
@pytest.mark.because("cutmix_gives_four_values", "cutmix_cuts_one_rectangle")
@pytest.mark.weight(0.25)
def test_cutmix_gives_the_labels_of_both(student):
    """labels_a are the labels of the images themselves, labels_b those of the rectangles in them."""
    for one in several(student, "cutmix"):
        require_labels(one, cutmix_of(one.mixed, one.images), "cutmix")


def shares(student, shape=None):
    """(lam, the share of pixels that are each image's own) of several calls of cutmix."""
    if shape is None:
        made = several(student, "cutmix")
    else:
        made = [mixed_by(student, "cutmix", student.next_seed() % 2**31, shape=shape) for _ in range(8)]
    for one in made:
        found = cutmix_of(one.mixed, one.images)
        if found.box is not None or not np.array_equal(one.first, one.second):  # else every partner is itself
            yield one.lam, found.share


@pytest.mark.component("cutmix")
@pytest.mark.because(
    "cutmix_gives_four_values", "cutmix_cuts_one_rectangle", "cutmix_gives_the_labels_of_both"
)
@pytest.mark.weight(0.25)
def test_cutmix_tells_the_share_that_is_left(student):
    """lam is the share of pixels that are each image's own, counted from the rectangle as it was cut."""
    found = list(shares(student))
    wrong = [(lam, share) for lam, share in found if abs(lam - share) > 1e-3]
    if not wrong:
        return
    lam, share = wrong[0]
    message = f"lam is {lam:.3f}, but {share:.3f} of the pixels are each image's own."
    if all(abs(1 - lam - share) < 1e-3 for lam, share in found):
        raise Mismatch(
            message + " It is the share of the rectangle.",
            hint="1 - the rectangle's pixels / all pixels.",
            look_for="_ / (_ * _)",
        )
    if all(abs(lam - share) < 1e-3 for lam, share in shares(student, (6, 3, 14, 14))):
        raise Mismatch(
            message + " The images have 12 rows and 20 columns; for square ones lam is right.",
            hint="images[:, :, top:bottom, left:right]: the last axis is the width.",
            look_for="_.shape[-2:] | _.shape[2:], _.shape",
        )
    raise Mismatch(
        message,
        hint="Count the pixels of the rectangle that was cut: it is clipped, and its sides are whole.",
        look_for="return",
    )


def leaves_its_inputs(student, way):
    """Check that the images and the labels that were given stay as they were."""
    for one in several(student, way):
        if one.outcome.args[0].plain is not one.images:
            raise Mismatch(
                "The images that were given are changed: whoever holds the batch finds mixed images in it.",
                hint="Write into a copy: images.clone().",
                look_for="mul_() | add_() | lerp_() | copy_(), mixed",
            )
        if one.outcome.args[1].plain is not one.labels:
            raise Mismatch("The labels that were given are changed.", hint="labels[order] makes a copy.")


@pytest.mark.component("mixup")
@pytest.mark.because("mixup_gives_four_values")
@pytest.mark.weight(0.25)
def test_mixup_changes_no_input(student):
    """The images and the labels that mixup was given stay as they were."""
    leaves_its_inputs(student, "mixup")


@pytest.mark.component("cutmix")
@pytest.mark.because("cutmix_gives_four_values")
@pytest.mark.weight(0.25)
def test_cutmix_changes_no_input(student):
    """The images and the labels that cutmix was given stay as they were."""
    leaves_its_inputs(student, "cutmix")


def follows_its_generator(student, way):
    """Check that the same state of the generator gives the same result, and others another."""
    images = student.tensor(6, 3, 12, 20)

    def made(seed):
        found = student.call(
            way, images, torch.arange(6), 1.0, Library("numpy.random.default_rng", seed)
        ).returned.items(4)
        return found[0].tensor(), found[3].number()

    (one, lam), (again, lam_again) = made(11), made(11)
    if not torch.equal(one, again) or lam != lam_again:
        raise Mismatch(
            "Two generators in the same state give different results: something is drawn from elsewhere.",
            hint="Draw everything from `generator`, as with generator.permutation(len(images)).",
            look_for=DRAWN_ELSEWHERE,
        )
    if all(torch.equal(one, made(seed)[0]) for seed in (12, 13, 14)):
        raise Mismatch("The same images come out, whatever the state of the generator.")


@pytest.mark.component("mixup")
@pytest.mark.because("mixup_gives_four_values")
@pytest.mark.weight(0.25)
def test_mixup_draws_from_its_generator(student):
    """mixup draws everything from the generator: the same state gives the same result."""
    follows_its_generator(student, "mixup")


@pytest.mark.component("cutmix")
@pytest.mark.because("cutmix_gives_four_values")
@pytest.mark.weight(0.25)
def test_cutmix_draws_from_its_generator(student):
    """cutmix draws everything from the generator: the same state gives the same result."""
    follows_its_generator(student, "cutmix")


def mixes_nothing(student, way):
    """Check that with alpha=0 lam is 1, and the images are what they were."""
    try:
        one = mixed_by(student, way, 3, alpha=0)
    except Mismatch as error:
        if error.concerns.startswith(("ValueError", "ZeroDivisionError")):
            raise Mismatch(
                f"With alpha=0 {way} raises an error; it should mix nothing, with lam = 1.",
                hint="Beta(0, 0) does not exist: check that alpha > 0 before you draw.",
                look_for="beta()",
            ) from error
        raise
    unmixed = torch.allclose(one.mixed, one.images, atol=1e-5)
    if abs(one.lam - 1) > 1e-6 or not unmixed:
        raise Mismatch(
            f"With alpha=0 {way} gives lam = {one.lam:.3f}"
            + ("" if unmixed else ", and other images")
            + "; lam should be 1, and nothing mixed.",
            hint="Draw the share only if alpha > 0.",
            look_for="beta()",
        )


@pytest.mark.component("mixup")
@pytest.mark.because("mixup_gives_four_values", "mixup_mixes_each_image_with_another")
@pytest.mark.weight(0.25)
def test_mixup_mixes_nothing_without_alpha(student):
    """With alpha=0 lam is 1, and mixup leaves the images as they were."""
    mixes_nothing(student, "mixup")


@pytest.mark.component("cutmix")
@pytest.mark.because(
    "cutmix_gives_four_values", "cutmix_cuts_one_rectangle", "cutmix_tells_the_share_that_is_left"
)
@pytest.mark.weight(0.25)
def test_cutmix_mixes_nothing_without_alpha(student):
    """With alpha=0 lam is 1, and cutmix leaves the images as they were."""
    mixes_nothing(student, "cutmix")


@pytest.mark.component("mixup")
@pytest.mark.because("mixup_gives_four_values", "mixup_mixes_each_image_with_another")
@pytest.mark.weight(0.25)
def test_mixup_shares_depend_on_alpha(student):
    """Small alpha gives shares near 0 and 1, large alpha shares near one half."""

    def spread(alpha):
        found = [
            student.call(
                "mixup",
                torch.ones(2, 1, 1, 1),
                torch.arange(2),
                alpha,
                Library("numpy.random.default_rng", seed),
            )
            .returned.items(4)[3]
            .number(0, 1)
            for seed in range(30)
        ]
        return float(np.mean(np.abs(np.array(found) - 0.5)))

    small, large = spread(0.2), spread(8.0)
    if small < 0.28 or large > 0.2:
        raise Mismatch(
            f"In 30 calls lam is {small:.2f} away from one half on average with alpha=0.2, and {large:.2f} "
            "with alpha=8. Drawn from Beta(alpha, alpha), it is about 0.39 and 0.10.",
            hint="generator.beta(alpha, alpha)",
            look_for="random() | uniform() | rand() | beta()",
        )


# --- the loss ---------------------------------------------------------------------------------------------


def scores_with_losses(*losses):
    """Scores of one image whose cross-entropy is known for the first classes; one more class has the rest."""
    likely = torch.tensor([math.exp(-each) for each in losses])
    return torch.cat([likely, 1 - likely.sum()[None]]).log()


LOSS_SCORES = scores_with_losses(1, 4, 7, 3)  # of the classes 0 to 3; class 4 has the rest


def known_loss(student, lam, gradients=False, smoothing=0.0):
    """mixed_loss of images whose labels_a have the loss 1, and whose labels_b have the loss 3."""
    criterion = student.keep(Library("torch.nn.CrossEntropyLoss", label_smoothing=smoothing))
    a, b = torch.tensor([0, 0, 0]), torch.tensor([3, 3, 3])
    scores = LOSS_SCORES.repeat(3, 1)
    return student.call("mixed_loss", criterion, scores, a, b, lam, gradients=gradients)


@pytest.mark.component("mixed_loss")
def test_mixed_loss_is_a_number(student):
    """mixed_loss gives a number, with gradients."""
    criterion = student.keep(Library("torch.nn.CrossEntropyLoss"))
    labels = torch.tensor([0, 1, 2])
    outcome = student.call(
        "mixed_loss", criterion, student.tensor(3, 4), labels, labels.flip(0), 0.3, gradients=True
    )
    outcome.returned.number()
    if not outcome.attached:
        raise Mismatch(
            "What mixed_loss returns has no gradients.",
            hint="No .item(), no .detach().",
            look_for="item() | detach() | float() | no_grad(), return",
        )


@pytest.mark.component("mixed_loss")
@pytest.mark.because("mixed_loss_is_a_number")
@pytest.mark.weight(0.25)
def test_mixed_loss_weighs_both_labels(student):
    """The loss of labels_a counts lam, that of labels_b the rest."""
    value = known_loss(student, 0.25).returned.number()
    if abs(value - 2.5) < 1e-3:
        return
    wrong = {
        1.5: "the shares are exchanged",
        2.0: "both count one half, whatever lam is",
        4.0: "both are added without their shares",
        1.0: "labels_b do not count",
        3.0: "labels_a do not count",
        7.0: "that is the loss of class 2, which lies between the labels 0 and 3",
    }
    why = next((f": {clause}" for number, clause in wrong.items() if abs(value - number) < 1e-3), "")
    raise Mismatch(
        f"For lam = 0.25, labels_a with the loss 1 and labels_b with the loss 3, mixed_loss gives "
        f"{value:.2f}; it should be 2.5{why}.",
        hint="Mix the losses, not the labels."
        if abs(value - 7) < 1e-3
        else "criterion gives the loss of labels_a, and that of labels_b: weigh them by lam and 1 - lam.",
        look_for="log_softmax(), return",
    )


@pytest.mark.component("mixed_loss")
@pytest.mark.because("mixed_loss_is_a_number", "mixed_loss_weighs_both_labels")
@pytest.mark.weight(0.25)
def test_mixed_loss_asks_its_criterion(student):
    """Both losses are those of the criterion, which may smooth labels."""
    scores = LOSS_SCORES[None]
    for lam, label, name in ((1.0, 0, "labels_a"), (0.0, 3, "labels_b")):
        value = known_loss(student, lam, smoothing=0.2).returned.number()
        expected = F.cross_entropy(scores, torch.tensor([label]), label_smoothing=0.2).item()
        if abs(value - expected) > 1e-3:
            raise Mismatch(
                f"With lam = {lam:g} and a criterion that smooths labels, mixed_loss gives {value:.3f}; the "
                f"criterion gives {expected:.3f} for {name}.",
                hint="Call the criterion that is given, with logits and labels as they are.",
                look_for="cross_entropy() | CrossEntropyLoss(), log_softmax()",
            )


def mixes_losses(student):
    """Whether the student's own mixed_loss is right where its losses are known."""
    found = [student.attempted(lambda lam=lam: known_loss(student, lam, True)) for lam in (0.25, 1.0)]
    return all(
        each is not None and each.attached and abs(each.returned.number() - right) < 1e-3
        for each, right in zip(found, (2.5, 1.0), strict=True)
    )


# --- what learns ------------------------------------------------------------------------------------------

DEPTH = 4  # blocks of the given model
BEFORE = {"everything": True, "nothing": False}  # what is trainable before a call
SHOWN = 3  # names of parameters that are told


def trainable_after(student, function, *arguments, before="everything"):
    """(what requires gradients after a call, all names) of a new model."""
    model = student.build("build_model", 4)
    model.call("requires_grad_", BEFORE[before])
    student.call(function, model, *arguments)
    found = student.component(model).parameters
    return {each.name for each in found if each.trainable}, {each.name for each in found}


def begins(names, *beginnings):
    """Those of the names that begin so."""
    return {name for name in names if name.startswith(beginnings)}


def require_trainable(found, wanted, call, before, hints, look_for):
    """Check what requires gradients, and tell the names of what wrongly does or does not.

    Args:
        hints: What to try where too much learns, and where too little does.
        look_for: The same for the lines.
    """
    if found == wanted:
        return
    more = found - wanted
    names = sorted(more or wanted - found)
    shown = ", ".join(f"`{name}`" for name in names[:SHOWN])
    listed = shown if len(names) <= SHOWN else f"{shown} and {len(names) - SHOWN} more"
    now = "do, and should not" if more else "do not, and should"
    raise Mismatch(
        f"Before {call} {before} required gradients; after it these {now}: {listed}.",
        hint=hints[0] if more else hints[1],
        look_for=look_for[0] if more else look_for[1],
    )


FREEZE_HINTS = ("Freeze everything first, then let the head learn.", "head.requires_grad_(True) at the end.")
FREEZE_LINES = (
    "norm.requires_grad_(True), zeros_like() | register_hook(), requires_grad_(False), requires_grad, for",
    "requires_grad_(False), requires_grad, for",
)


@pytest.mark.component("freeze_backbone")
def test_freezing_leaves_the_head(student):
    """After freeze_backbone exactly the head learns."""
    found, names = trainable_after(student, "freeze_backbone")
    require_trainable(
        found, begins(names, "head."), "freeze_backbone(model)", "everything", FREEZE_HINTS, FREEZE_LINES
    )


@pytest.mark.component("freeze_backbone")
@pytest.mark.because("freezing_leaves_the_head")
@pytest.mark.weight(0.25)
def test_freezing_lets_a_frozen_head_learn(student):
    """After freeze_backbone exactly the head learns, even if nothing learned before."""
    found, names = trainable_after(student, "freeze_backbone", before="nothing")
    require_trainable(
        found, begins(names, "head."), "freeze_backbone(model)", "nothing", FREEZE_HINTS, FREEZE_LINES
    )


@pytest.mark.component("freeze_backbone")
@pytest.mark.because("freezing_leaves_the_head")
@pytest.mark.weight(0.25)
def test_freezing_touches_nothing_else(student):
    """freeze_backbone leaves the weights and the forward pass: what is unfrozen later learns again."""
    model = student.build("build_model", 4)
    before = model.weights()
    student.call("freeze_backbone", model)
    after = model.weights()
    changed = [name for name in before if name in after and not torch.equal(before[name], after[name])]
    if changed:
        raise Mismatch(
            f"freeze_backbone changes the numbers of `{changed[0]}`.", hint="Set requires_grad alone."
        )
    model.call("requires_grad_", True)
    missing = model.gradients(student.tensor(2, 3, 32, 32), student.tensor(2, 4)).missing
    if missing:
        raise Mismatch(
            f"After freeze_backbone(model) and model.requires_grad_(True), `{missing[0]}` receives no "
            "gradient.",
            hint="Set requires_grad, and leave the model's forward alone.",
            look_for="no_grad() | detach()",
        )


@pytest.mark.component("unfreeze")
def test_unfreezing_reaches_everything(student):
    """After unfreeze(model) everything learns."""
    for before in BEFORE:
        found, names = trainable_after(student, "unfreeze", before=before)
        hint = "With blocks=None everything learns: model.requires_grad_(True)."
        require_trainable(
            found, names, "unfreeze(model)", before, (hint, hint), ("", "blocks is None | _ or 0")
        )


@pytest.mark.component("unfreeze")
@pytest.mark.weight(0.25)
def test_unfreezing_reaches_the_last_blocks(student):
    """After unfreeze(model, 2) exactly the head, the final norm and the last two blocks learn."""
    for before in BEFORE:
        found, names = trainable_after(student, "unfreeze", 2, before=before)
        wanted = begins(names, "head.", "norm.", f"blocks.{DEPTH - 2}.", f"blocks.{DEPTH - 1}.")
        hints = (
            "Freeze everything first; then let head, norm and blocks[len(blocks) - n:] learn.",
            "Head and final norm learn in any case, and with them the last blocks, not the first ones.",
        )
        require_trainable(found, wanted, "unfreeze(model, 2)", before, hints, ("_[:_], for", "_[:_], for"))


@pytest.mark.component("unfreeze")
@pytest.mark.because("unfreezing_reaches_the_last_blocks")
@pytest.mark.weight(0.25)
def test_unfreezing_with_zero_blocks(student):
    """After unfreeze(model, 0) exactly the head and the final norm learn."""
    for before in BEFORE:
        found, names = trainable_after(student, "unfreeze", 0, before=before)
        hints = ("A list's [-0:] is the whole list: blocks[len(blocks) - n:] is right for 0, too.",) * 2
        wanted = begins(names, "head.", "norm.")
        require_trainable(found, wanted, "unfreeze(model, 0)", before, hints, ("_[-_:], for", "for"))


@pytest.mark.component("build_model")
@pytest.mark.weight(0.25)
def test_model_begins_with_its_weights(student):
    """build_model gives a head for its classes, and the same pretrained weights each time."""
    one, other = student.build("build_model", 7).weights(), student.build("build_model", 7).weights()
    hint = "Leave build_model as handout.py has it."
    if "head.weight" in one and len(one["head.weight"]) != 7:
        raise Mismatch(
            f"build_model(7) has a head for {len(one['head.weight'])} classes.",
            hint=hint,
            look_for="VisionTransformer()",
        )
    drawn = [
        name
        for name, held in one.items()
        if "head" not in name and (name not in other or not torch.equal(held, other[name]))
    ]
    if not drawn and "norm.weight" in one and bool((one["norm.weight"] == 1).all()):
        raise Mismatch(
            "All weights of the final norm are 1, as in a model that was never trained: the pretrained "
            "weights are not loaded.",
            hint=hint,
            look_for="VisionTransformer()",
        )
    if drawn:
        raise Mismatch(
            f"Two models of build_model differ in `{drawn[0]}`: it is drawn anew, and not pretrained.",
            hint=hint,
            look_for="VisionTransformer()",
        )


# --- training and evaluation ------------------------------------------------------------------------------

# an image of class 0 has the loss 1, one of class 1 the loss 4; class 0 is what the scores say
KNOWN_SCORES = torch.cat(
    [torch.tensor([-1.0, -4.0]), torch.full((3,), (1 - math.exp(-1) - math.exp(-4)) / 3).log()]
)
LABELS = torch.tensor([0, 0, 0, 0, 1, 1])  # in batches of 4 and 2


def told_of(losses):
    """How a mean over images of batches with the losses 1 and 4 is often computed wrongly."""
    return {
        losses[
            0
        ]: "that is the mean of the two batches' means; a batch of 2 images counts as much as one of 4",
        losses[1]: "that is the sum of the two batches' means",
        losses[2]: "that is the loss of the last batch alone",
        losses[3]: "that is the sum over all images",
    }


def why_wrong(value):
    """How a loss came about that should have been 2: (the clause, what to try, the line)."""
    clause = next(
        (
            f": {words}"
            for number, words in told_of((2.5, 5.0, 4.0, 12.0)).items()
            if abs(value - number) < 0.02
        ),
        "",
    )
    hint = "Add up each batch's loss times its number of images, and divide by the number of all images."
    return clause, hint, "_ / len(), return" if abs(value - 2.5) < 0.02 else "return"


def rigged_epoch(student, labels, sizes, mixes=None):
    """train_one_epoch of a model that gives every image the known scores, and cannot move.

    Args:
        mixes: What `mix` gives for each batch: labels_a, labels_b, lam. The images are those of the loader.
    """
    model = student.build("build_model", len(KNOWN_SCORES))
    model.set_weights({"head.weight": torch.zeros(len(KNOWN_SCORES), 96), "head.bias": KNOWN_SCORES})
    optimizer = Library("torch.optim.SGD", model, lr=0.0)
    images = student.tensor(len(labels), 3, 32, 32)
    further = {}
    if mixes:
        answers = [(part, *mix) for part, mix in zip(images.split(sizes), mixes, strict=True)]
        further = {"mix": Fake.script(answers, kind="function", name="mix")}
    loader, criterion = batches(images, labels, sizes), Library("torch.nn.CrossEntropyLoss")
    return student.call("train_one_epoch", model, loader, optimizer, criterion, CPU, **further)


def require_share(accuracy):
    """Check that an accuracy is between 0 and 1."""
    value = accuracy.number(0)
    if value > 1:
        raise Mismatch(
            f"The accuracy is {value:.2f}; it should be between 0 and 1.",
            hint="The hits, divided by the number of images.",
            look_for="100 * _ | _ * 100 | 100.0 * _ | _ * 100.0, return",
        )


@pytest.mark.component("train_one_epoch")
def test_epoch_gives_two_numbers(student):
    """train_one_epoch gives a loss and an accuracy, and the model learns."""
    model = student.build("build_model", 4)
    before = model.weights()
    optimizer, criterion = Library("torch.optim.SGD", model, lr=0.1), Library("torch.nn.CrossEntropyLoss")
    loader = batches(student.tensor(6, 3, 32, 32), torch.tensor([0, 1, 2, 3, 0, 1]), [4, 2])
    found = student.call("train_one_epoch", model, loader, optimizer, criterion, CPU).returned.items(2)
    found[0].number(0)
    require_share(found[1])
    if torch.equal(before["head.weight"], model.weights()["head.weight"]):
        raise Mismatch(
            "After train_one_epoch, the model's weights are what they were.",
            hint="For every batch: optimizer.zero_grad(), loss.backward(), optimizer.step().",
            look_for="step(), backward()",
        )


@pytest.mark.component("train_one_epoch")
@pytest.mark.because("epoch_gives_two_numbers")
@pytest.mark.weight(0.25)
def test_epoch_averages_over_images(student):
    """Loss and accuracy are means over all images, also if the last batch is smaller."""
    found = rigged_epoch(student, LABELS, [4, 2]).returned.items(2)
    loss, accuracy = found[0].number(), found[1].number()
    if abs(accuracy - 4 / 6) > 0.01:
        raise Mismatch(
            f"Of 6 images the model is right about 4, and the accuracy is {accuracy:.3f}.",
            hint="Add up the hits of all batches, and divide by the number of all images.",
            look_for="return",
        )
    if abs(loss - 2) > 0.02 and mixes_losses(student):
        clause, hint, look_for = why_wrong(loss)
        raise Mismatch(
            "4 images have the loss 1, and 2 images in another batch the loss 4: the mean over images is 2. "
            f"train_one_epoch returns {loss:.2f}{clause}.",
            hint=hint,
            look_for=look_for,
        )


def mixed_epochs(student):
    """Two epochs of one batch: the labels are class 2, mix makes them 0 and 1, and then 1 and 0, by 0.75."""

    def make():
        zeros, ones = torch.zeros(4, dtype=torch.int64), torch.ones(4, dtype=torch.int64)
        try:
            return [
                rigged_epoch(student, zeros + 2, [4], [(a, b, 0.75)])
                for a, b in ((zeros, ones), (ones, zeros))
            ]
        except Mismatch as error:
            return error

    found = student.shared("mixed epochs", make)
    if isinstance(found, Mismatch):
        raise found.again()
    return found


@pytest.mark.component("train_one_epoch")
@pytest.mark.because("epoch_gives_two_numbers", "epoch_averages_over_images")
@pytest.mark.weight(0.25)
def test_epoch_trains_with_both_labels(student):
    """With `mix`, the loss is that of the mixed images: of labels_a and labels_b by their shares."""
    epochs = mixed_epochs(student)
    if not all(epoch.calls_of("mix") for epoch in epochs):
        raise Mismatch(
            "`mix` is given, and never called.",
            hint="if mix is not None: images, labels_a, labels_b, lam = mix(images, labels), for each batch.",
            look_for="loop",
        )
    losses = [epoch.returned.items(2)[0].number() for epoch in epochs]
    if np.allclose(losses, [1.75, 3.25], atol=0.02) or not mixes_losses(student):
        return
    why = ""
    if abs(losses[0] - 1) < 0.02 and abs(losses[1] - 4) < 0.02:
        why = ": it is that of labels_a alone"
    elif abs(losses[0] + float(KNOWN_SCORES[2])) < 0.02 and abs(losses[0] - losses[1]) < 0.02:
        why = ": it is that of the labels before mixing"
    raise Mismatch(
        f"Where labels_a have the loss 1, labels_b the loss 4 and lam is 0.75, the loss is {losses[0]:.2f}; "
        f"it should be 1.75{why}.",
        hint="mixed_loss(criterion, logits, labels_a, labels_b, lam), with what mix returned.",
        look_for="criterion()",
    )


@pytest.mark.component("train_one_epoch")
@pytest.mark.because("epoch_gives_two_numbers", "epoch_averages_over_images", "epoch_trains_with_both_labels")
@pytest.mark.weight(0.25)
def test_epoch_counts_hits_by_their_shares(student):
    """With `mix`, hits of labels_a count lam, and hits of labels_b count 1 - lam."""
    first, second = (epoch.returned.items(2)[1].number() for epoch in mixed_epochs(student))
    if abs(first - 0.75) < 0.01 and abs(second - 0.25) < 0.01:
        return
    wrong = {
        (1.0, 1.0): "a prediction of either label counts as a whole hit",
        (1.0, 0.0): "hits of labels_b do not count, and hits of labels_a count as whole ones",
        (0.75, 0.0): "hits of labels_b do not count",
        (0.25, 0.75): "the shares are exchanged",
    }
    why = next(
        (f": {words}" for (a, b), words in wrong.items() if abs(first - a) < 0.01 and abs(second - b) < 0.01),
        "",
    )
    raise Mismatch(
        f"With lam = 0.75 the accuracy is {first:.2f} if the model says labels_a for all images, and "
        f"{second:.2f} if it says labels_b; it should be 0.75 and 0.25{why}.",
        hint="lam * hits of labels_a + (1 - lam) * hits of labels_b",
        look_for="_ == labels_a | labels_a == _, _ == _",
    )


def trained_weights(student, weights, *parts):
    """The weights after train_one_epoch from the given ones, with an optimizer of its own."""
    model = student.build("build_model", 4)
    model.set_weights(weights)
    loader = batches(
        torch.cat([images for images, _ in parts]),
        torch.cat([labels for _, labels in parts]),
        [len(labels) for _, labels in parts],
    )
    optimizer, criterion = Library("torch.optim.SGD", model, lr=0.1), Library("torch.nn.CrossEntropyLoss")
    student.call("train_one_epoch", model, loader, optimizer, criterion, CPU)
    return model.weights()


@pytest.mark.component("train_one_epoch")
@pytest.mark.because("epoch_gives_two_numbers")
@pytest.mark.weight(0.25)
def test_epoch_takes_a_step_for_each_batch(student):
    """Each batch takes a step along its own gradient, as if it were an epoch by itself."""
    start = student.build("build_model", 4).weights()
    one = student.tensor(3, 3, 32, 32), torch.tensor([0, 1, 2])
    other = student.tensor(3, 3, 32, 32), torch.tensor([3, 1, 0])
    together = trained_weights(student, start, one, other)
    in_turn = trained_weights(student, trained_weights(student, start, one), other)
    if not all(torch.allclose(together[name], in_turn[name], atol=2e-4) for name in together):
        raise Mismatch(
            "An epoch over two batches does not leave the weights that an epoch over the first batch and one "
            "over the second leave: gradients of different batches are added up, or a batch has no step.",
            hint="For every batch: optimizer.zero_grad(), loss.backward(), optimizer.step().",
            look_for="zero_grad(), loop, backward()",
        )


@pytest.mark.component("train_one_epoch")
@pytest.mark.because("epoch_gives_two_numbers")
@pytest.mark.weight(0.25)
def test_epoch_sets_the_modes(student):
    """Blocks in which nothing learns are in evaluation mode, and all others in training mode."""
    model = student.build("build_model", 4)
    blocks = model.get("blocks").thing("module")
    for number in range(DEPTH):
        fake = Fake.script([torch.zeros(3, 65, 96)], name=f"block{number}", parameters={"offset": (96,)})
        blocks.set(str(number), fake)
    for number in (0, 1):
        model.get(f"blocks.{number}").thing("module").call("requires_grad_", False)
    model.call("train")
    optimizer, criterion = Library("torch.optim.SGD", model, lr=0.01), Library("torch.nn.CrossEntropyLoss")
    loader = batches(student.tensor(6, 3, 32, 32), torch.tensor([0, 1, 2, 3, 0, 1]), [3, 3])
    outcome = student.call("train_one_epoch", model, loader, optimizer, criterion, CPU)
    modes = [{call.training for call in outcome.calls_of(f"block{number}")} for number in range(DEPTH)]
    if not all(modes):
        return
    for number in (2, 3):
        if modes[number] != {True}:
            raise Mismatch(
                f"With blocks 0 and 1 frozen, block {number} is in evaluation mode while it is trained.",
                hint="model.train() first; then block.eval() for the blocks in which nothing learns.",
                look_for="model.eval(), body",
            )
    for number in (0, 1):
        if modes[number] != {False}:
            raise Mismatch(
                f"With blocks 0 and 1 frozen, block {number} is in training mode.",
                hint="After model.train(), block.eval() for each block in which nothing learns.",
                look_for="block.train() | layer.train(), model.train()",
            )


def known_evaluation(student):
    """(images, outcome) of an evaluation of 6 images: 4 with the loss 1, and 2 that are taken for others."""

    def make():
        images = torch.from_numpy(numbered_images(6, student.next_seed(), (3, 16, 16)))
        scores = KNOWN_SCORES[None].repeat(6, 1)
        loader, criterion = batches(images, LABELS, [4, 2]), Library("torch.nn.CrossEntropyLoss")
        try:
            return images, student.call("evaluate", Fake.rows(scores), loader, criterion, CPU)
        except Mismatch as error:
            return error

    found = student.shared("known evaluation", make)
    if isinstance(found, Mismatch):
        raise found.again()
    return found


@pytest.mark.component("evaluate")
def test_evaluation_gives_four_values(student):
    """evaluate gives loss, accuracy, targets and predictions."""
    images = torch.from_numpy(numbered_images(6, student.next_seed(), (3, 16, 16)))
    loader = batches(images, torch.tensor([0, 1, 2, 0, 1, 2]), [4, 2])
    criterion = Library("torch.nn.CrossEntropyLoss")
    found = student.call("evaluate", Fake.rows(student.tensor(6, 3)), loader, criterion, CPU).returned
    loss, accuracy, targets, predictions = found.items(4, "values: loss, accuracy, targets, predictions")
    loss.number(0)
    require_share(accuracy)
    for name, each in (("targets", targets), ("predictions", predictions)):
        count = each.array(None, whole=True).size
        if count < 6:
            raise Mismatch(
                f"For 6 images in two batches evaluate gives {count} {name}.",
                hint="Collect those of every batch.",
                look_for="_[-1], return",
            )
        each.array(6, whole=True)


@pytest.mark.component("evaluate")
@pytest.mark.because("evaluation_gives_four_values")
@pytest.mark.weight(0.25)
def test_evaluation_shows_the_images_as_they_are(student):
    """evaluate shows the model the loader's images as they are: nothing is mixed."""
    images, outcome = known_evaluation(student)
    seen = [call.args[0] for call in outcome.calls_of("model") if call.args]
    if sum(map(len, seen)) == len(images) and not torch.allclose(torch.cat(seen), images, atol=1e-5):
        raise Mismatch(
            "The images that the model is shown are not those that the loader gives.",
            hint="model(images), with images from the loader.",
            look_for="_ * images + _, model()",
        )


@pytest.mark.component("evaluate")
@pytest.mark.because("evaluation_gives_four_values", "evaluation_shows_the_images_as_they_are")
@pytest.mark.weight(0.25)
def test_evaluation_keeps_the_order(student):
    """targets are the labels of all images and predictions what the model says, in the loader's order."""
    _, outcome = known_evaluation(student)
    returned = outcome.returned.items(4)
    targets, predictions = (each.array(6, whole=True).tolist() for each in returned[2:])
    said = [0] * 6
    if (targets, predictions) == (said, LABELS.tolist()):
        raise Mismatch(
            "Targets and predictions are returned in each other's places.",
            hint="loss, accuracy, targets, predictions: the loader's labels before what the model says.",
            look_for="return",
        )
    if targets != LABELS.tolist():
        raise Mismatch(f"For the labels {LABELS.tolist()} the targets are {targets}.", look_for="return")
    if predictions != said:
        raise Mismatch(
            f"The largest score is that of class 0 for all six images; the predictions are {predictions}.",
            hint="logits.argmax(dim=1) for each batch.",
            look_for="argmax() | max()",
        )


@pytest.mark.component("evaluate")
@pytest.mark.because("evaluation_gives_four_values", "evaluation_shows_the_images_as_they_are")
@pytest.mark.weight(0.25)
def test_evaluation_averages_over_images(student):
    """Loss and accuracy are means over all images, also if the last batch is smaller."""
    _, outcome = known_evaluation(student)
    returned = outcome.returned.items(4)
    loss, accuracy = returned[0].number(), returned[1].number()
    if abs(accuracy - 4 / 6) > 1e-3:
        raise Mismatch(
            f"Of 6 images the model is right about 4, and the accuracy is {accuracy:.3f}.",
            hint="(predictions == targets), over all images: the share of those that are equal.",
            look_for="return",
        )
    if abs(loss - 2) > 0.01:
        clause, hint, look_for = why_wrong(loss)
        raise Mismatch(
            "4 images have the loss 1, and 2 images in another batch the loss 4: the mean over images is 2. "
            f"evaluate returns {loss:.2f}{clause}.",
            hint=hint,
            look_for=look_for,
        )


@pytest.mark.component("evaluate")
@pytest.mark.because("evaluation_gives_four_values")
@pytest.mark.weight(0.25)
def test_evaluation_only_looks(student):
    """evaluate puts the model in evaluation mode, and computes no gradients."""
    _, outcome = known_evaluation(student)
    calls = outcome.calls_of("model")
    if any(call.training for call in calls):
        raise Mismatch(
            "The model is in training mode while it is measured: dropout would make its answers random.",
            hint="model.eval() first.",
            look_for="train(), body",
        )
    if any(call.gradients for call in calls):
        raise Mismatch(
            "Gradients are kept while the model is measured, which takes memory for nothing.",
            hint="with torch.no_grad(): around the loop over the batches.",
            look_for="enable_grad(), for",
        )


# --- early stopping ---------------------------------------------------------------------------------------

NAN = math.nan
UNTOUCHED = 99.0


def stopping_model(student):
    """A model for an EarlyStopping, whose weights are filled with a number."""
    return student.component(student.keep(Fake.script([0.0], parameters={"weight": (2,)})))


def said_by(student, values, patience, min_delta=0.0):
    """What step says to each value until it says True, and what restore leaves if each step had a number."""
    stopping, model, said = student.make("EarlyStopping", patience, min_delta), stopping_model(student), []
    for number, value in enumerate(values, start=1):
        model.set_weights({"weight": torch.full((2,), float(number))})
        said.append(stopping.call("step", value, model).returned.truth())
        if said[-1]:
            break
    model.set_weights({"weight": torch.full((2,), UNTOUCHED)})
    return said, stopping, model


def require_said(student, values, stop, hint, look_for, patience=2, min_delta=0.0):
    """Check that step says True at one value and at none before it.

    Args:
        stop: Of the value, counted from 1; None: at none.
    """
    said, _, _ = said_by(student, values, patience, min_delta)
    wanted = [number == stop for number in range(1, (stop or len(values)) + 1)]
    if said != wanted:
        listed = ", ".join("NaN" if math.isnan(value) else f"{value:g}" for value in values)
        settings = f"patience={patience}" + (f", min_delta={min_delta:g}" if min_delta else "")
        now = f"says True at value {len(said)}" if said[-1] else "never says True"
        right = f"it should at value {stop}" if stop else "it should never"
        raise Mismatch(
            f"With {settings} and the values {listed}, step {now}; {right}.", hint=hint, look_for=look_for
        )


@pytest.mark.component("EarlyStopping")
def test_stopping_stops(student):
    """After `patience` steps without an improvement, step gives True."""
    stopping = student.make("EarlyStopping", 2)
    model = student.keep(Fake.script([0.0], parameters={"weight": (2,)}))
    said = [stopping.call("step", value, model).returned.truth() for value in (0.5, 0.4, 0.3)]
    if said != [False, False, True]:
        late = not any(said)
        raise Mismatch(
            f"With patience 2 and the values 0.5, 0.4, 0.3, step gives {said}.",
            hint="The first value is an improvement, the two others are none: higher is better.",
            look_for="value < _ | value <= _ | _ > value, _ > patience | patience < _" if late else "",
        )


@pytest.mark.component("EarlyStopping")
@pytest.mark.because("stopping_stops")
@pytest.mark.weight(0.25)
def test_stopping_begins_to_count_anew(student):
    """An improvement begins the count anew: only steps in a row count."""
    hint = "Set the count back to 0 at each improvement."
    require_said(student, [0.5, 0.4, 0.6, 0.5, 0.7, 0.6], None, hint, "if")


@pytest.mark.component("EarlyStopping")
@pytest.mark.because("stopping_stops")
@pytest.mark.weight(0.25)
def test_stopping_compares_with_the_best(student):
    """A value is compared with the best so far, and not with the one before it."""
    hint = "Keep the best value; a value that is no improvement leaves it as it is."
    require_said(student, [0.8, 0.3, 0.4, 0.5], 4, hint, "best", patience=3)


@pytest.mark.component("EarlyStopping")
@pytest.mark.because("stopping_stops")
@pytest.mark.weight(0.25)
def test_stopping_takes_ties_for_none(student):
    """A value as good as the best so far is no improvement."""
    require_said(student, [0.7, 0.7, 0.7], 3, "Use > in place of >=.", "value >= _ | _ <= value")


@pytest.mark.component("EarlyStopping")
@pytest.mark.because("stopping_stops", "stopping_compares_with_the_best")
@pytest.mark.weight(0.25)
def test_stopping_knows_nan(student):
    """NaN is no improvement, and if it comes first, the first number after it is one."""
    hint = "Every comparison with NaN is False: ask whether a value is better, not whether it is not worse."
    require_said(student, [0.5, NAN, NAN], 3, hint, "not _ | value <= _ | _ >= value")
    hint = "NaN must not become the best: begin with -math.inf, or ask math.isnan."
    require_said(student, [NAN, 0.3, 0.4, 0.5], None, hint, "_ is None")


@pytest.mark.component("EarlyStopping")
@pytest.mark.because("stopping_stops", "stopping_begins_to_count_anew", "stopping_compares_with_the_best")
@pytest.mark.weight(0.25)
def test_stopping_uses_min_delta(student):
    """A value that is larger by min_delta or less is no improvement."""
    hint = "An improvement is larger than the best so far plus min_delta."
    for values, stop in (([0.5, 0.52, 0.56, 0.58, 0.59], 5), ([0.5, 0.48, 0.47], 3)):
        require_said(student, values, stop, hint, "value > _ | value >= _ | _ < value", min_delta=0.05)


@pytest.mark.component("EarlyStopping")
@pytest.mark.because("stopping_stops")
@pytest.mark.weight(0.25)
def test_restore_gives_the_best_weights(student):
    """restore gives the model the weights back that it had at the best value."""
    _, stopping, model = said_by(student, [0.3, 0.6, 0.4], 3)
    stopping.call("restore", model)
    left = model.weights()["weight"].unique().tolist()
    if left == [2.0]:
        return
    if left == [UNTOUCHED]:
        raise Mismatch(
            "After restore the model has the weights that it had before: none were kept at the best value, "
            "or what was kept changed with the model.",
            hint="Clone each tensor of state_dict() at each improvement: it refers to the weights.",
            look_for="state_dict(), if",
        )
    step = f"those of step {left[0]:.0f}" if len(left) == 1 else "those of no one step"
    raise Mismatch(
        f"With the values 0.3, 0.6, 0.4 restore leaves {step}; it should leave those of step 2.",
        hint="Keep a copy of the weights at an improvement, and only there.",
        look_for="state_dict()",
    )


@pytest.mark.component("EarlyStopping")
@pytest.mark.weight(0.25)
def test_restore_before_any_step(student):
    """restore does nothing where there are no best weights yet."""
    stopping, model = student.make("EarlyStopping", 2), stopping_model(student)
    model.set_weights({"weight": torch.full((2,), UNTOUCHED)})
    try:
        stopping.call("restore", model)
    except Mismatch as error:
        raise Mismatch(
            "restore before any step raises an error; it should do nothing.",
            hint="Check that there are best weights.",
            look_for="load_state_dict()",
            cause=error.cause,
            concerns=error.concerns,
        ) from error
    if model.weights()["weight"].unique().tolist() != [UNTOUCHED]:
        raise Mismatch("restore before any step changes the model; it should do nothing.")


# --- fit --------------------------------------------------------------------------------------------------

BATCHES = 3
# training gets better and better; its accuracies are no validation accuracies of the scripts below
TRAINING = [(1.0 - n / 1000, n / 1000) for n in range(1, 60)]
PEAK = [0.30, 0.35, 0.5, 0.6] + [0.55 - n / 100 for n in range(40)]  # the second epoch of stage 2 is the best


@pytest.mark.component("fit")
def test_fit_goes_through_both_stages(student):
    """fit calls train_one_epoch once for each epoch, and returns a history."""
    model = student.build("build_model", 4)
    fakes = {
        "train_one_epoch": Fake.script([(1.0, 0.5)], marks=True),
        "evaluate": Fake.script(
            [(1.0, value, torch.tensor([0]), torch.tensor([0])) for value in (0.3, 0.4, 0.5)]
        ),
    }
    loaders = {
        part: batches(torch.zeros(1, 3, 32, 32), torch.tensor([0])) for part in ("train", "validation")
    }
    outcome = student.call("fit", model, loaders, (1, 2), CPU, replace=fakes)
    if len(outcome.calls_of("train_one_epoch")) != 3:
        raise Mismatch(
            f"fit(..., epochs=(1, 2)) calls train_one_epoch {len(outcome.calls_of('train_one_epoch'))} times."
        )


class Fitted:
    """A fit whose epochs are scripted, and what was seen of it.

    Attributes:
        epochs: The calls of train_one_epoch.
        left: The number of the epoch whose weights are left; NaN if they are no one epoch's.
    """

    def __init__(self, student, values, pair, stops=None):
        targets = torch.tensor([0])
        fakes = {
            "train_one_epoch": Fake.script(TRAINING, marks=True, steps=BATCHES),
            "evaluate": Fake.script([(1.0 - value, value, targets, targets) for value in values]),
        }
        if stops is not None:
            methods = {
                "step": Fake.script(stops, kind="function", name="step"),
                "restore": Fake.script([None], kind="function", name="restore"),
            }
            fakes["EarlyStopping"] = Fake.script([None], methods=methods)
        images = torch.zeros(BATCHES, 3, 32, 32)
        self.model = student.build("build_model", 4)
        loaders = {
            "train": student.keep(batches(images, torch.tensor([0, 1, 2]), [1] * BATCHES)),
            "validation": student.keep(batches(images[:2], torch.tensor([0, 1]))),
            "test": student.keep(batches(images[:2], torch.tensor([0, 1]), [1, 1])),
        }
        self.outcome = student.call("fit", self.model, loaders, pair, CPU, replace=fakes)
        self.epochs = self.outcome.calls_of("train_one_epoch")
        self.steps = self.outcome.calls_of("step") if stops is not None else ()
        left = self.model.weights()["norm.weight"].unique().tolist()
        self.left = left[0] if len(left) == 1 else NAN
        self.lengths = [
            (name, each.call("__len__").returned.whole_number())
            for name in ("train_one_epoch", "evaluate")
            for call in self.outcome.calls_of(name)
            for each in (*call.args, *call.kwargs.values())
            if getattr(each, "kind", "") == "object" and "Loader" in each.type
        ]

    def watched(self, call):
        """The value that a step of the EarlyStopping was given."""
        given = [each for each in (*call.args, *call.kwargs.values()) if isinstance(each, int | float)]
        return round(float(given[0]), 6) if given else NAN


def fitted(student, name):
    """One of the scripted fits, made once for all checks; None if fit calls its parts in another way."""
    values, pair, stops = {
        "improving": ([n / 20 for n in range(1, 7)], (2, 4), None),
        "peak": (PEAK, (2, 40), None),
        "peak watched": (PEAK, (2, 40), [False, False, False, True]),
        "no stop": ([0.3, 0.4, 0.5, 0.6, 0.55], (1, 4), None),
        "no stop watched": ([0.3, 0.4, 0.5, 0.6, 0.55], (1, 4), [False]),
        "better stage 1": (
            [0.9, 0.91, 0.92, 0.93, 0.94, 0.95, 0.6, 0.61, 0.62, 0.63, 0.64, 0.65],
            (6, 6),
            None,
        ),
        "better stage 1 watched": ([0.9, *(0.5,) * 5, 0.6, 0.61, 0.62, 0.63, 0.64, 0.65], (6, 6), [False]),
    }[name]

    def make():
        try:
            return Fitted(student, values, pair, stops)
        except Mismatch as error:
            return error

    found = student.shared(f"fit {name}", make)
    if isinstance(found, Mismatch):
        raise found.again()
    return found if found.epochs and found.outcome.calls_of("evaluate") else None


def attempted_fit(student, name):
    """The same; None also if it raises."""
    return student.attempted(lambda: fitted(student, name))


def own_parts_work(student):
    """Whether the student's freeze_backbone and unfreeze are right, so that fit can be judged with them."""
    frozen = student.attempted(lambda: trainable_after(student, "freeze_backbone"))
    whole = student.attempted(lambda: trainable_after(student, "unfreeze", before="nothing"))
    if frozen is None or whole is None:
        return False
    return frozen[0] == begins(frozen[1], "head.") and whole[0] == whole[1]


@pytest.mark.component("fit")
@pytest.mark.because("fit_goes_through_both_stages")
@pytest.mark.weight(0.25)
def test_fit_learns_the_head_and_then_everything(student):
    """In stage 1 exactly the head learns, in stage 2 everything."""
    found = fitted(student, "improving")
    if found is None or len(found.epochs) != 6 or not own_parts_work(student):
        return
    everything = set(found.model.weights())
    head = begins(everything, "head.")
    moved = [set(call.moved) for call in found.epochs]
    if moved == [head, head] + [everything] * 4:
        return
    if moved == [head] * 4 + [everything] * 2:
        raise Mismatch(
            "With epochs=(2, 4) the head alone learns for four epochs, and everything for two: the numbers "
            "are exchanged.",
            hint="epochs[0] is that of stage 1, in which the head learns.",
            look_for="range(epochs[1])",
        )
    if any(each != head for each in moved[:2]):
        raise Mismatch(
            f"In stage 1 the optimizer moves {len(moved[0])} parameters; they should be the {len(head)} of "
            "the head alone.",
            hint="freeze_backbone(model) before the optimizer of stage 1 is made.",
            look_for="freeze_backbone(), body",
        )
    late = {name for call in found.epochs[2:] for name in call.learns} == everything
    raise Mismatch(
        f"In stage 2 the optimizer moves {min(map(len, moved[2:]))} of {len(everything)} parameters"
        + (", although all require gradients." if late else ": the others are frozen."),
        hint="unfreeze(model) first, then make the optimizer of stage 2, of model.parameters().",
        look_for="unfreeze()" if late else "",
    )


@pytest.mark.component("fit")
@pytest.mark.because("fit_goes_through_both_stages", "fit_learns_the_head_and_then_everything")
@pytest.mark.weight(0.25)
def test_fit_lowers_its_rate(student):
    """Stage 2 begins at a tenth of stage 1's rate, and half a cosine takes it down."""
    found = fitted(student, "improving")
    if found is None or len(found.epochs) != 6:
        return
    rates = [max(call.moved.values(), default=NAN) for call in found.epochs]
    if not all(map(math.isfinite, rates)):
        return  # nothing learns: another check says so
    first, base, shares = rates[0], rates[2], [rate / rates[2] if rates[2] else NAN for rate in rates[2:]]
    if abs(10 * base - first) > 0.05 * first:
        raise Mismatch(
            f"Stage 1 has the rate {first:g}, and stage 2 begins at {base:g}; it should begin at a tenth.",
            hint="Pretrained weights should move only a little: the optimizer of stage 2 gets RATE / 10.",
            look_for="AdamW(model.parameters()) | Adam(model.parameters()) | SGD(model.parameters())",
        )
    # of half a cosine over four epochs, and of one whose last epoch is at its end
    if any(np.allclose(shares, way, atol=0.03) for way in ([1, 0.854, 0.5, 0.146], [1, 0.75, 0.25, 0])):
        return
    listed = ", ".join(f"{share:.2f}" for share in shares)
    rises = any(later > earlier + 1e-6 for earlier, later in pairwise(shares))
    raise Mismatch(
        f"In four epochs of stage 2 the rate is {listed} times that of the first one; half a cosine down to "
        "0 gives 1.00, 0.85, 0.50, 0.15.",
        hint="Step the schedule once an epoch, or give it the number of all batches."
        if rises
        else "A schedule as long as stage 2, of epochs[1] steps, that is stepped after each epoch.",
        look_for="register_step_post_hook(), schedule.step() | scheduler.step(), CosineAnnealingLR()"
        if rises
        else "CosineAnnealingLR() | LambdaLR() | OneCycleLR(), schedule.step() | scheduler.step()",
    )


@pytest.mark.component("fit")
@pytest.mark.because("fit_goes_through_both_stages", "fit_learns_the_head_and_then_everything")
@pytest.mark.weight(0.25)
def test_fit_ends_stage_2_early(student):
    """Stage 2 ends early when its EarlyStopping says so."""
    found = fitted(student, "peak")
    if found is None or len(found.epochs) < 42:
        return
    watched = attempted_fit(student, "peak watched")
    if watched is None or (watched.steps and len(watched.epochs) == 6):
        return  # it ends when it is told so: what the student's own EarlyStopping says is judged elsewhere
    if len(watched.steps) > 4:
        raise Mismatch(
            "Stage 2 goes on after step has said True.",
            hint="Leave the loop when step gives True.",
            look_for="step(_, model)",
        )
    raise Mismatch(
        "Stage 2 goes through all its 40 epochs, although validation falls from the third one on.",
        hint="An EarlyStopping watches the validation accuracy: leave the loop when its step gives True.",
    )


@pytest.mark.component("fit")
@pytest.mark.because("fit_goes_through_both_stages", "fit_ends_stage_2_early")
@pytest.mark.weight(0.25)
def test_fit_leaves_the_best_weights(student):
    """In the end the model has the weights with the best validation accuracy, stopped early or not."""
    for name, best in (("peak", 4), ("no stop", 4)):
        found = fitted(student, name)
        if found is None or found.left == best:
            continue
        watched = attempted_fit(student, f"{name} watched")
        if watched is None or watched.outcome.calls_of("restore"):
            continue  # what the student's own EarlyStopping restores is judged elsewhere
        if name == "no stop" and len(found.epochs) != 5:
            continue
        last = found.left == len(found.epochs)
        raise Mismatch(
            f"Validation is best after epoch {best} of {len(found.epochs)}; the model is left with the "
            + ("weights of the last one" if last else "weights of another one")
            + (" if stage 2 is not ended early." if name == "no stop" else "."),
            hint="restore(model) of the EarlyStopping, after the loop over the epochs of stage 2.",
            look_for="restore(), end",
        )


@pytest.mark.component("fit")
@pytest.mark.because("fit_goes_through_both_stages")
@pytest.mark.weight(0.25)
def test_fit_chooses_by_validation(student):
    """Epochs train on the training images, and the best is chosen by the accuracy on validation images."""
    found = fitted(student, "improving")
    if found is None:
        return
    lengths = {name: {length for each, length in found.lengths if each == name} for name, _ in found.lengths}
    measured, trained = lengths.get("evaluate", {1}), lengths.get("train_one_epoch", {BATCHES})
    if 1 not in measured:
        kind = "training" if BATCHES in measured else "test"
        raise Mismatch(
            f"evaluate gets the {kind} images; it should get the validation images.",
            hint="evaluate(model, loaders['validation'], ...)",
            look_for='loaders["test"], evaluate()',
        )
    if BATCHES not in trained:
        raise Mismatch("train_one_epoch does not get the training images.", look_for="train_one_epoch()")
    watched = attempted_fit(student, "peak watched")
    for call in watched.steps if watched is not None else ():
        value = watched.watched(call)
        if any(abs(value - accuracy) < 1e-6 for _, accuracy in TRAINING):
            raise Mismatch(
                "The EarlyStopping gets the training accuracy; it should get the validation accuracy.",
                hint="evaluate gives it: loss, accuracy, targets, predictions.",
                look_for="step(_, model)",
            )


@pytest.mark.component("fit")
@pytest.mark.because("fit_goes_through_both_stages", "fit_ends_stage_2_early", "fit_chooses_by_validation")
@pytest.mark.weight(0.25)
def test_fit_watches_each_stage_by_itself(student):
    """What stage 1 reached does not end stage 2: each stage has an EarlyStopping of its own, or none."""
    found = fitted(student, "better stage 1")
    if found is None or len(found.epochs) == 12:
        return
    watched = attempted_fit(student, "better stage 1 watched")
    if watched is None or {call.instance for call in watched.steps} != {0} or len(watched.steps) <= 6:
        return  # there is one for stage 2 alone
    raise Mismatch(
        "One EarlyStopping watches both stages: stage 2 ends although its accuracies keep rising, because "
        "stage 1 had better ones.",
        hint="Make a new EarlyStopping when stage 2 begins.",
        look_for="EarlyStopping()",
    )


# --- per class --------------------------------------------------------------------------------------------

# class 0 has 4 images, class 1 two, class 3 one; classes 2 and 4 have none
TARGETS, PREDICTIONS = [0, 0, 1, 0, 3, 1, 0], [0, 1, 1, 0, 3, 2, 0]
OF_CLASSES = {0: 0.75, 1: 0.5, 3: 1.0}


@pytest.mark.component("per_class_accuracy")
def test_each_class_has_an_accuracy(student):
    """per_class_accuracy gives a number for each class."""
    student.call("per_class_accuracy", [0, 1, 1], [0, 1, 0], 2).returned.array(2)


@pytest.mark.component("per_class_accuracy")
@pytest.mark.because("each_class_has_an_accuracy")
@pytest.mark.weight(0.25)
def test_absent_classes_keep_their_places(student):
    """The array has a place for each class, even for one that has no images."""
    found = student.call("per_class_accuracy", TARGETS, PREDICTIONS, 5).returned.array(None, finite=False)
    if found.shape != (5,):
        raise Mismatch(
            f"For 5 classes, of which 2 have no images, the array has the shape {found.shape}.",
            hint="Fill an array of `classes` numbers.",
            look_for="return",
        )


@pytest.mark.component("per_class_accuracy")
@pytest.mark.because("each_class_has_an_accuracy", "absent_classes_keep_their_places")
@pytest.mark.weight(0.25)
def test_accuracies_are_shares_of_each_class(student):
    """A class's accuracy is the share of its own images that are predicted as that class."""
    found = student.call("per_class_accuracy", TARGETS, PREDICTIONS, 5).returned.array(5, finite=False)
    for label, right in OF_CLASSES.items():
        if abs(found[label] - right) > 1e-4 or math.isnan(found[label]):
            own = TARGETS.count(label)
            percent = all(abs(found[each] - 100 * share) < 0.01 for each, share in OF_CLASSES.items())
            raise Mismatch(
                f"Of {own} images of class {label}, {round(right * own)} are predicted correctly: that is "
                f"{right:.2f}. per_class_accuracy gives {found[label]:.2f}.",
                hint="Accuracies are between 0 and 1."
                if percent
                else "The hits of a class, divided by the number of images whose target it is.",
                look_for="100 * _ | _ * 100"
                if percent
                else "predictions == _ | sum(axis=0) | sum(0), _ / len(), _ / _",
            )


@pytest.mark.component("per_class_accuracy")
@pytest.mark.because(
    "each_class_has_an_accuracy", "absent_classes_keep_their_places", "accuracies_are_shares_of_each_class"
)
@pytest.mark.weight(0.25)
def test_absent_classes_have_nan(student):
    """A class that does not occur in the targets has NaN: nobody knows its accuracy."""
    found = student.call("per_class_accuracy", TARGETS, PREDICTIONS, 5).returned.array(5, finite=False)
    for label in (2, 4):
        if not math.isnan(found[label]):
            raise Mismatch(
                f"Class {label} has no images, and per_class_accuracy gives {found[label]:g}; that should be "
                "NaN.",
                hint="Begin with np.full(classes, np.nan).",
                look_for="zeros() | nan_to_num()",
            )


# --- pictures ---------------------------------------------------------------------------------------------

MEAN, STD = (0.4, 0.5, 0.3), (0.25, 0.2, 0.3)
NAMES = ("anvil", "bell", "crown", "drum")
MAPS = "imshow() | heatmap() | matshow() | pcolormesh() | ConfusionMatrixDisplay()"


def _drawn(student, name, *args):
    outcome = student.call(name, *args, figures=True)
    if not outcome.figures:
        raise Mismatch(f"{name} draws nothing, or its figure cannot be found.", hint="Leave it open.")
    return outcome


def normalized(student, side):
    """An image as it looks, (side, side, 3), and the same normalized, (3, side, side)."""
    looks = torch.rand(3, side, side, generator=student.random)
    mean, std = torch.tensor(MEAN).view(3, 1, 1), torch.tensor(STD).view(3, 1, 1)
    return looks.permute(1, 2, 0).numpy(), (looks - mean) / std


def colors(outcome):
    """The pictures in color of the figures, from 0 to 1."""
    for value in outcome.arrays.values():
        if value.ndim == 3 and value.size:
            picture = np.asarray(value, dtype=float)[..., :3]
            yield picture / 255 if picture.max() > 1.5 else picture


def alike(picture, looks):
    """Whether a picture is this one."""
    return picture.shape == looks.shape and bool(np.abs(picture - looks).max() < 0.02)


@pytest.mark.component("show_patches")
def test_patches_are_drawn(student):
    """show_patches draws a figure."""
    _drawn(student, "show_patches", student.tensor(3, 16, 16), 8, (0.5, 0.5, 0.5), (0.2, 0.2, 0.2))


@pytest.mark.component("show_patches")
@pytest.mark.because("patches_are_drawn")
@pytest.mark.weight(0.25)
def test_patches_are_cut_from_the_image(student):
    """Every patch is shown as it was before the image was normalized, in its place."""
    looks, image = normalized(student, 16)
    outcome = _drawn(student, "show_patches", image, 4, MEAN, STD)
    found = []
    for figure in outcome.figures:
        for axes in figure.axes:
            for number in axes.images:
                value = np.asarray(outcome.arrays[f"image{number}"], dtype=float)
                if value.ndim == 3 and value.shape[:2] == (4, 4):
                    left, _, _, top = axes.place
                    found.append(
                        (round(top, 2), round(left, 2), value[..., :3] / (255 if value.max() > 1.5 else 1))
                    )
    if not found:
        framed = any(axes.lines for figure in outcome.figures for axes in figure.axes)
        others = [each for each in colors(outcome) if not alike(each, looks)]
        if framed or others:
            return  # one picture with lines or gaps between its patches, perhaps
        raise Mismatch(
            "The image is shown, but no patch of 4 x 4 pixels by itself.",
            hint="imshow for each patch, each in an axes of its own.",
            look_for="imshow()",
        )
    patches = {
        (row, column): looks[4 * row : 4 * row + 4, 4 * column : 4 * column + 4]
        for row in range(4)
        for column in range(4)
    }
    missing = [place for place, patch in patches.items() if not any(alike(each, patch) for *_, each in found)]
    if missing:
        raw = image.permute(1, 2, 0).numpy()
        if any(alike(each, np.clip(raw[:4, :4], 0, 1)) or alike(each, raw[:4, :4]) for *_, each in found):
            raise Mismatch(
                "The patches are shown as they were normalized, in false colors.",
                hint="image * std + mean, channel by channel.",
                look_for="clamp() | clip(), imshow()",
            )
        raise Mismatch(
            f"Of the 16 patches of an image, {len(missing)} are not shown as they were.",
            hint="Patch (row, column) begins at row * patch_size and column * patch_size.",
            look_for="top, imshow(_[_])",
        )
    rows, columns = (sorted({each[axis] for each in found}, reverse=axis == 0) for axis in (0, 1))
    if len(rows) != 4 or len(columns) != 4:
        return  # arranged in another way, as in one row
    placed = {(rows.index(top), columns.index(left)): patch for top, left, patch in found}
    if any(place in placed and not alike(placed[place], patch) for place, patch in patches.items()):
        turned = all(alike(placed[place], patches[place[::-1]]) for place in placed)
        raise Mismatch(
            "Rows and columns of the patches are exchanged."
            if turned
            else "The patches are shown, but not in the places that they have in the image.",
            hint="The first axis of the grid is the row, from the top; the second one is the column.",
            look_for="top, imshow(_[_])",
        )


@pytest.mark.component("show_attention")
def test_attention_is_drawn(student):
    """show_attention draws a figure."""
    model = student.build("build_model", 4)
    _drawn(student, "show_attention", model, student.tensor(3, 32, 32), (0.5, 0.5, 0.5), (0.2, 0.2, 0.2))


DIM, HEADS, WIDE = 96, 4, 24  # of the given model: 4 heads of 24 features
SIDE = 8  # patches in a row of an image
BRIGHT = ((1, 2), (2, 6), (5, 3), (6, 1))  # the patch to which each head's class token attends
ODDS = (1e5, 1e5, 400.0, 400.0)  # how much more than to another token
OF_FIRST_BLOCK, OF_PATCHES = (7, 5), (3, 0)  # what others attend to


def rigged_attention(weights):
    """Numbers with which the attention of the first and the last block is known; None for another model.

    A token is nothing but its place, one of the 96 features, and the blocks add nothing to it.
    """
    size = ((1 - 1 / DIM) / DIM) ** 0.5  # the spread of a single 1 among zeros, which the norm divides by
    changed = {}
    for name, held in weights.items():
        part, kind = name.rsplit(".", 2)[-2:] if "." in name else (name, "")
        if part in ("proj", "fc2", "qkv") or name == "cls_token":
            changed[name] = torch.zeros_like(held)
        if part == "norm1":
            changed[name] = torch.full_like(held, float(kind == "weight"))
        if name == "pos_embed":
            changed[name] = 10 * torch.eye(DIM)[None, : held.shape[1]]
    for block in (0, DEPTH - 1):
        matrix, bias = torch.zeros(3 * DIM, DIM), torch.zeros(3 * DIM)
        for head in range(HEADS):
            # the first feature of a query says that it is the class token's, the second that it is a patch's
            own, other = head * WIDE, head * WIDE + 1
            matrix[own, 0], bias[own] = size, 1 / DIM
            matrix[other, 0], bias[other] = -size, 1 - 1 / DIM
            wanted = (BRIGHT[head], OF_PATCHES) if block else (OF_FIRST_BLOCK, OF_PATCHES)
            for feature, (row, column) in zip((own, other), wanted, strict=True):
                matrix[DIM + feature, 1 + SIDE * row + column] = math.log(ODDS[head]) * WIDE**0.5 * size
        changed |= {f"blocks.{block}.attn.qkv.weight": matrix, f"blocks.{block}.attn.qkv.bias": bias}
    known = all(name in weights and weights[name].shape == value.shape for name, value in changed.items())
    return changed if known and "pos_embed" in changed else None


def maps_of_patches(outcome):
    """The maps of the figures as numbers of patches, (8, 8), from 0 to 1; those of pixels are averaged."""
    for value in outcome.arrays.values():
        value = np.asarray(value, dtype=float)
        side = math.isqrt(value.size)
        if (
            value.ndim > 2
            or side * side != value.size
            or side % SIDE
            or (value.ndim == 2 and len(value) != side)
        ):
            continue
        heat = value.reshape(SIDE, side // SIDE, SIDE, side // SIDE).mean(axis=(1, 3))
        heat = heat - np.median(heat)
        yield heat / max(float(heat.max()), 1e-9)


@pytest.mark.component("show_attention")
@pytest.mark.because("attention_is_drawn")
@pytest.mark.weight(0.25)
def test_attention_of_a_known_model(student):
    """The map is bright where the class token of the last block attends, in the mean over the heads."""
    model = student.build("build_model", 4)
    rigged = rigged_attention(model.weights())
    if rigged is None:
        return  # not the given model
    model.set_weights(rigged)
    maps = list(
        maps_of_patches(_drawn(student, "show_attention", model, normalized(student, 32)[1], MEAN, STD))
    )
    if not maps:
        raise Mismatch(
            "No figure shows a map of 8 x 8 patches, nor one of the image's size.",
            hint="imshow of an array (8, 8).",
            look_for="imshow()",
        )
    wanted = set(BRIGHT)
    for heat in maps:
        places = {(int(row), int(column)) for row, column in np.argwhere(heat > 1 / 6)}
        strong, weak = (np.mean([heat[place] for place in part]) for part in (BRIGHT[:2], BRIGHT[2:]))
        share = float(weak / max(strong, 1e-9))
        if places == wanted and 0.7 < share < 1:
            return
    shifted = {divmod(SIDE * row + column + 1, SIDE) for row, column in BRIGHT}
    ways = (
        (
            places == wanted and 0.2 < share < 0.4,
            "The map has the right places, but the shares that half as large scores would give.",
            "The scores are divided by the root of the width of one head.",
            "_ ** -0.5 | _ ** 0.5 | sqrt() | rsqrt(), scale",
        ),
        (
            places == wanted,
            "The map has the right places, but not the right shares.",
            "The softmax is over all tokens, of scores that are divided by the root of one head's width.",
            "softmax(), _ ** -0.5 | _ ** 0.5 | sqrt() | rsqrt(), scale",
        ),
        (
            len(places) == 1 and places < wanted,
            "The heads of a known model attend to four different patches, and the map shows one of them.",
            "The mean over the heads, not one of them.",
            "_[0, 0, 1:] | _[:, 0, 0, 1:] | _[0, 0, 0, 1:], _[0] | _[0, 0], reshape()",
        ),
        (
            places == {OF_FIRST_BLOCK},
            "The map shows what the class token of the first block attends to.",
            "model.blocks[-1] is the last block.",
            "blocks[0]",
        ),
        (
            places == {OF_PATCHES},
            "The map shows what the patches attend to, not what the class token does.",
            "The class token is the first token: row 0 of the attention weights.",
            "mean()",
        ),
        (
            places == shifted,
            "Everything in the map is shifted by one patch.",
            "Drop the first column, which is the class token's, not the last one.",
            "_[0, :-1] | _[:, :-1] | _[..., :-1]",
        ),
        (
            places == {place[::-1] for place in BRIGHT},
            "Rows and columns of the map are exchanged.",
            "The patches lie row by row: reshape(rows, columns).",
            "_.T | transpose(), reshape()",
        ),
    )
    for fits, message, hint, look_for in ways:
        if fits:
            raise Mismatch(message, hint=hint, look_for=look_for)
    raise Mismatch(
        "The class token of a known model attends to the patches (1, 2), (2, 6), (5, 3) and (6, 1), by row "
        f"and column; the map is bright at {', '.join(map(str, sorted(places)[:6])) or 'no patch'}.",
        hint="Row 0 of the last block's attention weights is the class token's; patches begin at column 1.",
        look_for="_[1:, 0] | _[:, 1:, 0] | _[..., 1:, 0], reshape()",
    )


@pytest.mark.component("show_attention")
@pytest.mark.because("attention_is_drawn")
@pytest.mark.weight(0.25)
def test_attention_shows_the_image_as_it_was(student):
    """Beside the map is the image as it was before it was normalized."""
    looks, image = normalized(student, 32)
    model = student.build("build_model", 4)
    if not any(
        alike(each, looks) for each in colors(_drawn(student, "show_attention", model, image, MEAN, STD))
    ):
        raise Mismatch(
            "No picture in the figure is the image as it was before it was normalized.",
            hint="image * std + mean, channel by channel.",
            look_for="imshow(image.permute()) | imshow(_.permute().clamp().numpy()), imshow()",
        )


def history_of_fit(student):
    """(the history of a fit of five epochs, its values)."""
    training = [(0.91, 0.31), (0.72, 0.52), (0.63, 0.63), (0.55, 0.64), (0.51, 0.68)]
    validation = [(0.84, 0.41), (0.75, 0.47), (0.77, 0.52), (0.71, 0.57), (0.70, 0.61)]
    targets = torch.tensor([0, 1])
    methods = {
        "step": Fake.script([False], kind="function", name="step"),
        "restore": Fake.script([None], kind="function", name="restore"),
    }
    fakes = {
        "train_one_epoch": Fake.script(training),
        "evaluate": Fake.script([(loss, accuracy, targets, targets) for loss, accuracy in validation]),
        "EarlyStopping": Fake.script([None], methods=methods),
    }
    loader = batches(torch.zeros(2, 3, 32, 32), torch.tensor([0, 1]), [1, 1])
    loaders, model = {"train": loader, "validation": loader}, student.build("build_model", 4)
    history = student.call("fit", model, loaders, (2, 3), CPU, replace=fakes).returned
    values = {
        "training loss": [each[0] for each in training],
        "validation loss": [each[0] for each in validation],
        "validation accuracy": [each[1] for each in validation],
    }
    return history.plain, values


def history_drawn(student):
    """(the outcome of plot_history, the values that it should show); drawn once for all checks."""

    def make():
        try:
            history, values = history_of_fit(student)
            return _drawn(student, "plot_history", history), values
        except Mismatch as error:
            return error

    found = student.shared("history", make)
    if isinstance(found, Mismatch):
        raise found.again()
    return found


@pytest.mark.component("plot_history")
def test_history_is_drawn(student):
    """plot_history draws what fit returns."""
    model = student.build("build_model", 4)
    fakes = {
        "train_one_epoch": Fake.script([(1.0, 0.5)]),
        "evaluate": Fake.script([(1.0, 0.5, torch.tensor([0]), torch.tensor([0]))]),
    }
    loaders = {
        part: batches(torch.zeros(1, 3, 32, 32), torch.tensor([0])) for part in ("train", "validation")
    }
    history = student.call("fit", model, loaders, (1, 1), CPU, replace=fakes).returned
    _drawn(student, "plot_history", history.plain)


def draws(curve, values):
    """Whether a curve has these values, or the same in percent."""
    return any(
        len(curve.y) == len(values) and np.allclose(curve.y, unit * np.array(values), atol=1e-3 * unit)
        for unit in (1, 100)
    )


@pytest.mark.component("plot_history")
@pytest.mark.because("history_is_drawn")
@pytest.mark.weight(0.25)
def test_history_shows_every_epoch(student):
    """Losses and accuracies of training and validation are drawn for the epochs of both stages."""
    outcome, values = history_drawn(student)
    found = curves(outcome)
    for what, wanted in values.items():
        pieces = ((wanted[:2], wanted[2:]), (wanted[:2], wanted[1:]))
        if any(draws(curve, wanted) for curve in found) or any(
            all(any(draws(curve, piece) for curve in found) for piece in pair) for pair in pieces
        ):
            continue
        alone = [
            name
            for name, part in (("1", wanted[:2]), ("2", wanted[2:]))
            if any(draws(c, part) for c in found)
        ]
        raise Mismatch(
            f"Of the {what}, only the epochs of stage {alone[0]} are drawn."
            if alone
            else f"No curve shows the {what} of all five epochs of a history.",
            hint="Draw each list of the history as a whole, from the first epoch on.",
            look_for="_[_:] | _[:_]" if alone else "plot()",
        )


@pytest.mark.component("plot_history")
@pytest.mark.because("history_is_drawn", "history_shows_every_epoch")
@pytest.mark.weight(0.25)
def test_history_says_what_it_shows(student):
    """Axes and curves have names."""
    outcome, _ = history_drawn(student)
    if all(curve.x_label + curve.y_label + curve.title + curve.name == "" for curve in curves(outcome)):
        raise Mismatch(
            "Nothing says what the axes and the curves are.",
            hint="label= for each curve and ax.legend(); ax.set_xlabel and ax.set_ylabel for each axes.",
            look_for="plot()",
        )


@pytest.mark.component("plot_history")
@pytest.mark.because("history_is_drawn", "history_shows_every_epoch", "history_says_what_it_shows")
@pytest.mark.weight(0.25)
def test_history_marks_stage_2(student):
    """Something marks where stage 2 begins."""
    outcome, _ = history_drawn(student)
    found = curves(outcome)
    said = " ".join(
        " ".join([figure.title, axes.title, axes.x_label, axes.y_label, *axes.texts, *axes.headings])
        + " ".join([*axes.line_names, *axes.x_ticks])
        for figure in outcome.figures
        for axes in figure.axes
    ).lower()
    upright = any(len(curve.x) >= 2 and np.ptp(curve.x) == 0 for curve in found)
    pieces = any(len(curve.y) in (2, 3) and np.ptp(curve.x) > 0 for curve in found)
    if (
        not upright
        and not pieces
        and not any(word in said for word in ("stage", "phase", "unfre", "fine", "head"))
    ):
        raise Mismatch(
            "Nothing marks where stage 2 begins.",
            hint="ax.axvline draws an upright line.",
            look_for="legend(), plot()",
        )


@pytest.mark.component("plot_per_class")
def test_classes_are_drawn(student):
    """plot_per_class draws a figure."""
    _drawn(student, "plot_per_class", ["cat", "dog", "cow"], np.array([0.5, 0.7, 0.2]))


@pytest.mark.component("plot_per_class")
@pytest.mark.because("classes_are_drawn")
@pytest.mark.weight(0.25)
def test_bars_have_names(student):
    """Each bar has its class's name, even without an accuracy, and an axis says what is drawn."""
    outcome = _drawn(student, "plot_per_class", list(NAMES), np.array([0.4, math.nan, 0.9, 0.7]))
    every = [axes for figure in outcome.figures for axes in figure.axes]
    labels = [text for axes in every for text in (axes.title, axes.x_label, axes.y_label)]
    labels += [figure.title for figure in outcome.figures]
    written = [text for axes in every for text in (*axes.texts, *axes.headings, *axes.line_names)]
    ticks = [text for axes in every for text in (*axes.x_ticks, *axes.y_ticks)]
    named = set(classes_named("\n".join([*labels, *written, *ticks]), NAMES))
    missing = [name for label, name in enumerate(NAMES) if label not in named]
    if missing:
        raise Mismatch(
            f"The names of {len(missing)} of {len(NAMES)} classes are not in the picture.",
            hint="ax.set_xticks(range(len(names)), names)",
            look_for="bar() | barh()",
        )
    if not any(labels):
        raise Mismatch(
            "Nothing says what the bars' length is: no axis has a label, and there is no title.",
            hint='ax.set_ylabel("accuracy")',
            look_for="bar() | barh()",
        )


@pytest.mark.component("plot_confusion_matrix")
def test_matrix_is_drawn(student):
    """plot_confusion_matrix draws a figure."""
    _drawn(student, "plot_confusion_matrix", np.array([[3, 1], [0, 4]]), ["cat", "dog"])


@pytest.mark.component("plot_confusion_matrix")
@pytest.mark.because("matrix_is_drawn")
@pytest.mark.weight(0.25)
def test_matrix_has_the_true_classes_as_rows(student):
    """The counts are shown as they are given, with the true classes as rows."""
    matrix = np.array([[9, 1, 2, 3], [0, 7, 4, 1], [5, 0, 8, 2], [1, 6, 0, 5]])
    found = heat_maps(_drawn(student, "plot_confusion_matrix", matrix, list(NAMES)), NAMES)
    if not found:
        raise Mismatch(
            "No figure shows a map of 4 x 4 counts.", hint="imshow, pcolormesh or a heat map.", look_for=MAPS
        )
    shown = found[0]
    ways = (
        matrix,
        matrix / matrix.sum(axis=1, keepdims=True),
        100 * matrix / matrix.sum(axis=1, keepdims=True),
    )
    turned = shown.row_role == "predicted" or shown.column_role == "true"
    values = shown.values.T if turned else shown.values
    if any(values.shape == way.shape and np.allclose(values, way, atol=1e-2) for way in ways):
        return
    if any(np.allclose(values.T, way, atol=1e-2) for way in ways):
        raise Mismatch(
            "The map is transposed: its rows are the predicted classes"
            + (", although the axes say otherwise." if shown.row_role or shown.column_role else "."),
            hint="Show the matrix as it is given: its rows are the true classes.",
            look_for=f"_.T | transpose(), {MAPS}",
        )
    raise Mismatch("What the map shows is not the matrix.", look_for=MAPS)


@pytest.mark.component("plot_confusion_matrix")
@pytest.mark.because("matrix_is_drawn", "matrix_has_the_true_classes_as_rows")
@pytest.mark.weight(0.25)
def test_matrix_names_its_classes(student):
    """The names of all classes are on both axes."""
    matrix = np.array([[9, 1, 2, 3], [0, 7, 4, 1], [5, 0, 8, 2], [1, 6, 0, 5]])
    found = heat_maps(_drawn(student, "plot_confusion_matrix", matrix, list(NAMES)), NAMES)
    if found and not found[0].is_named:
        raise Mismatch(
            "The names of the classes are not on both axes.",
            hint="ax.set_xticks(range(len(class_names)), class_names), and set_yticks in the same way.",
            look_for=MAPS,
        )
