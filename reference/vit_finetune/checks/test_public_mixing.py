"""Public checks of mixup and CutMix."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch

from grader.kit import Library, Mismatch, cutmix_of, mixup_of

DRAWN_ELSEWHERE = (
    "randperm() | randint() | torch.rand() | np.random.beta() | np.random.permutation() | np.random.randint()"
)


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
@pytest.mark.weight(0.25)
def test_mixup_gives_four_values(student):
    """Mixed images, two rows of labels and a share are returned."""
    _gives_four(student, "mixup")


@pytest.mark.component("cutmix")
@pytest.mark.weight(0.25)
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
        raise Mismatch(
            "labels_a and labels_b are exchanged: labels_a belongs to the images outside the rectangle."
            if way == "cutmix"
            else "labels_a and labels_b are exchanged: labels_a belongs to the images at their own places, "
            "which have the share lam.",
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
        hint="Count the pixels of the rectangle that was cut: its sides are whole, and it may be clipped.",
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


def cuts(student, alpha, seeds):
    """What cutmix did in a call with each state of the generator."""
    # no two images are alike in any pixel, so that each rectangle can be told, however many are drawn
    images = torch.arange(6.0).view(6, 1, 1, 1) + torch.rand(6, 3, 12, 16, generator=student.random) / 2
    made = [
        student.call("cutmix", images, torch.arange(6), alpha, Library("numpy.random.default_rng", seed))
        for seed in seeds
    ]
    return [cutmix_of(one.returned.items(4)[0].tensor(*images.shape).float(), images) for one in made]


def alike(small, large):
    """Whether rectangles of a small and of a large alpha are drawn alike.

    Whatever of the root and the border a cutmix takes into account, those of 0.2 scatter more than those of
    8, or more of them are nearly empty.
    """
    small, large = (np.array([1 - each.share for each in found]) for found in (small, large))
    emptier = (small < 0.03).mean() - (large < 0.03).mean()
    return small.std() < 1.4 * large.std() + 0.01 and emptier < 0.15


@pytest.mark.component("cutmix")
@pytest.mark.because("cutmix_gives_four_values", "cutmix_cuts_one_rectangle")
@pytest.mark.weight(0.25)
def test_cutmix_draws_its_rectangle(student):
    """The rectangle's size is drawn by alpha, and so is its place."""
    large = cuts(student, 8.0, range(48))
    places = [each.box for each in large if each.box is not None]
    corners = [{(box[row], box[column]) for box in places} for row in (0, 1) for column in (2, 3)]
    if any(len(corner) == 1 for corner in corners):
        raise Mismatch(
            "A corner of the rectangle is at the same place in each of 48 calls.",
            hint="Draw its place, too: generator.integers(height), generator.integers(width).",
            look_for="mixed",
        )
    # twice the middle of a rectangle, whose sides may be odd
    middles = np.array([(top + bottom, left + right) for top, bottom, left, right in places])
    if len(places) and (np.ptp(middles, axis=0) <= 1).all():
        raise Mismatch(
            "The middle of the rectangle is at the same place in each of 48 calls.",
            hint="Draw its place, too: generator.integers(height), generator.integers(width).",
            look_for="mixed",
        )
    # of clipped rectangles, a few tell little
    if alike(cuts(student, 0.2, range(48)), large) and alike(
        cuts(student, 0.2, range(192)), cuts(student, 8.0, range(192))
    ):
        raise Mismatch(
            "With alpha=0.2 the rectangles are of the same sizes as with alpha=8. Drawn from "
            "Beta(alpha, alpha), most shares are near 0 or 1 with 0.2, and near one half with 8.",
            hint="lam = generator.beta(alpha, alpha), and a rectangle of the area 1 - lam.",
            look_for="random() | uniform() | rand() | beta()",
        )
