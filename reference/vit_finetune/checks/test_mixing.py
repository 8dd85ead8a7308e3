"""mixup, cutmix and mixed_loss: shares and partners are solved for from the images."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from grader.kit import Library, Mismatch, cutmix_of, mixup_of, same

SEEDS = 12


class Mixed:
    """One call of a mixing function, and what it gave."""

    def __init__(self, student, reference, way, seed, *, shape=(6, 3, 12, 20), alpha=1.0):
        self.images = student.tensor(*shape)
        self.labels = torch.arange(shape[0]) + 3
        self.seed, self.alpha, self.way = seed, alpha, way
        self.outcome = student.call(way, self.images, self.labels, alpha, reference.oracle.generator(seed))
        made = self.outcome.returned.items(4, "values: images, labels_a, labels_b, lam")
        self.mixed = made[0].tensor(*shape).float()
        # averaging may have made labels something else than whole numbers
        self.first, self.second = (reference.oracle.numbers(each, shape[0]) for each in made[1:3])
        self.lam = made[3].number()

    def named(self, reference):
        """Raise the known mistake that gives the same on the same images."""

        def result(made):
            return made(
                self.images.clone(), self.labels.clone(), self.alpha, np.random.default_rng(self.seed)
            )

        def agree(found, other):
            close = reference.oracle.close
            return (
                close(found.mixed, other[0])
                and close(found.first, other[1])
                and close(found.second, other[2])
                and close(found.lam, other[3])
            )

        reference.oracle.name(reference, self.way, self, result, agree)

    def check_labels(self, reference, partners):
        """The labels are those of the images on either side."""
        own, other = self.labels.numpy(), self.labels.numpy()[partners]
        has_partner = partners != np.arange(len(partners))
        if np.array_equal(self.first, own) and np.array_equal(self.second[has_partner], other[has_partner]):
            return
        if np.array_equal(self.first[has_partner], other[has_partner]) and np.array_equal(
            self.second[has_partner], own[has_partner]
        ):
            raise reference.named(f"{self.way}_labels_exchanged")
        if not np.array_equal(self.first, np.round(self.first)):
            raise reference.named("mixup_labels_averaged")
        if sorted(self.second.tolist()) == sorted(own.tolist()) and np.array_equal(self.first, own):
            raise reference.named(f"{self.way}_labels_permuted_alone")
        raise Mismatch("labels_a and labels_b are not the labels of the images that were mixed.")


def nothing_mixed(reference):
    """What to raise where the images are given back."""
    return reference.oracle.undone("No image is changed, whatever the generator's state.", "mixing")


def seeds(student):
    """Seeds of generators."""
    return [student.next_seed() % 2**31 for _ in range(SEEDS)]


@pytest.mark.component("mixup")
@pytest.mark.weight(5)
@pytest.mark.shows("mixup_mixes_each_image_with_another", "mixup_gives_the_labels_of_both")
@pytest.mark.explains("mixup_gives_four_values", "mixup_mixes_nothing_without_alpha")
def test_mixup_is_what_it_says(student, reference):
    """Each image is lam of itself and 1 - lam of another; labels_b are that other image's labels."""
    moved = False
    for seed in seeds(student):
        mixed = Mixed(student, reference, "mixup", seed)
        try:
            found = mixup_of(mixed.mixed, mixed.images)
            share = found.share
        except Mismatch:
            mixed.named(reference)
            raise
        has_partner = found.partners != np.arange(len(found.partners))
        moved = moved or bool(has_partner.any())
        if has_partner.any() and abs(share - mixed.lam) > 1e-3:
            mixed.named(reference)
            if abs(1 - share - mixed.lam) < 1e-3:
                raise reference.named("mixup_share_of_the_other")
            raise Mismatch(f"lam is {mixed.lam:.3f}, but the images are mixed with the share {share:.3f}.")
        if len(set(found.partners[has_partner].tolist())) < has_partner.sum():
            raise reference.named("mixup_draws_with_replacement")
        mixed.check_labels(reference, found.partners)
        if not has_partner.any() and mixed.lam < 0.99 and not np.array_equal(mixed.first, mixed.second):
            mixed.named(reference)
            raise Mismatch(f"lam is {mixed.lam:.3f}, but every image is what it was.")
    if not moved:
        raise nothing_mixed(reference)


@pytest.mark.component("cutmix")
@pytest.mark.weight(5)
@pytest.mark.shows(
    "cutmix_cuts_one_rectangle", "cutmix_gives_the_labels_of_both", "cutmix_tells_the_share_that_is_left"
)
@pytest.mark.explains("cutmix_gives_four_values", "cutmix_mixes_nothing_without_alpha")
def test_cutmix_is_what_it_says(student, reference):
    """One rectangle, the same in all images, comes from another image; lam is the share of pixels kept."""
    said, true, touching = [], [], []
    moved = 0
    for seed in seeds(student):
        mixed = Mixed(student, reference, "cutmix", seed)
        try:
            found = cutmix_of(mixed.mixed, mixed.images)
        except Mismatch:
            mixed.named(reference)
            if bool((mixed.mixed == 0).any()):
                raise reference.named("cutmix_cuts_out") from None
            raise
        has_partner = found.partners != np.arange(len(found.partners))
        if len(set(found.partners[has_partner].tolist())) < has_partner.sum():
            mixed.named(reference)
            raise Mismatch("The rectangles do not come from a permutation of the batch.")
        mixed.check_labels(reference, found.partners)
        moved += int(has_partner.any())
        if found.box is None and np.array_equal(mixed.first, mixed.second):
            continue  # each image was its own partner, so that no rectangle can be seen
        said.append(mixed.lam)
        true.append(found.share)
        top, bottom, left, right = found.box or (1, 1, 1, 1)
        touching.append(top == 0 or left == 0 or bottom == 12 or right == 20)
    if not moved:
        raise nothing_mixed(reference)
    wrong = [abs(a - b) > 1e-3 for a, b in zip(said, true, strict=True)]
    if not any(wrong):
        return
    for seed in seeds(student)[:6]:
        Mixed(student, reference, "cutmix", seed).named(reference)
    if all(abs(1 - a - b) < 1e-3 for a, b in zip(said, true, strict=True)):
        raise reference.named("cutmix_share_of_the_box")
    if _right_for_squares(student, reference):
        raise reference.named("cutmix_height_and_width_exchanged")
    if not any(w and not t for w, t in zip(wrong, touching, strict=True)) or all(
        abs(a - b) < 0.12 or t for a, b, t in zip(said, true, touching, strict=True)
    ):
        raise reference.named("cutmix_share_as_drawn")
    number = wrong.index(True)
    raise Mismatch(
        f"lam is {said[number]:.3f}, but {true[number]:.3f} of the pixels are each image's own.",
        hint="Count the pixels of the rectangle as it is after clipping.",
    )


def _right_for_squares(student, reference):
    """Whether lam is right where height and width are the same."""
    for seed in seeds(student):
        mixed = Mixed(student, reference, "cutmix", seed, shape=(6, 3, 14, 14))
        try:
            if abs(cutmix_of(mixed.mixed, mixed.images).share - mixed.lam) > 1e-3:
                return False
        except Mismatch:
            return False
    return True


def leaves_its_inputs(student, reference, way):
    """Judge that the images and the labels that were given stay as they were, and that others come out."""
    changed = False
    for seed in seeds(student)[:6]:
        mixed = Mixed(student, reference, way, seed)
        if mixed.outcome.args[0].plain is not mixed.images:
            raise reference.named(f"{way}_changes_its_input")
        if mixed.outcome.args[1].plain is not mixed.labels:
            raise Mismatch(f"{way} changes the labels that it was given.", hint="Index makes a copy.")
        changed = changed or not torch.equal(mixed.mixed, mixed.images)
    if not changed:
        raise nothing_mixed(reference)


@pytest.mark.component("mixup")
@pytest.mark.weight(2)
@pytest.mark.shows("mixup_changes_no_input")
def test_mixup_leaves_its_inputs(student, reference):
    """The images and the labels that were given stay as they were."""
    leaves_its_inputs(student, reference, "mixup")


@pytest.mark.component("cutmix")
@pytest.mark.weight(2)
@pytest.mark.shows("cutmix_changes_no_input")
def test_cutmix_leaves_its_inputs(student, reference):
    """The images and the labels that were given stay as they were."""
    leaves_its_inputs(student, reference, "cutmix")


def follows_its_generator(student, reference, way):
    """Judge that the same state of the generator gives the same result, and another state another."""
    first, other = seeds(student)[:2]
    images = student.tensor(6, 3, 12, 20)

    def made(seed):
        return student.call(
            way, images, torch.arange(6), 1.0, reference.oracle.generator(seed)
        ).returned.items(4)

    one, again = made(first), made(first)
    if not torch.equal(one[0].tensor(), again[0].tensor()) or one[3].number() != again[3].number():
        raise reference.named(f"{way}_ignores_its_generator")
    if all(torch.equal(one[0].tensor(), made(seed)[0].tensor()) for seed in (other, other + 1, other + 2)):
        raise Mismatch(f"{way} gives the same mix, whatever the state of the generator.")


@pytest.mark.component("mixup")
@pytest.mark.weight(1)
@pytest.mark.shows("mixup_draws_from_its_generator")
def test_mixup_follows_its_generator(student, reference):
    """The same state of the generator gives the same result, and another state a different one."""
    follows_its_generator(student, reference, "mixup")


@pytest.mark.component("cutmix")
@pytest.mark.weight(1)
@pytest.mark.shows("cutmix_draws_from_its_generator")
def test_cutmix_follows_its_generator(student, reference):
    """The same state of the generator gives the same result, and another state a different one."""
    follows_its_generator(student, reference, "cutmix")


def mixes_nothing(student, reference, way):
    """Judge that with alpha=0 lam is 1 and the images are what they were, as they are not otherwise."""
    others = (Mixed(student, reference, way, seed) for seed in seeds(student)[:6])
    if all(torch.equal(each.mixed, each.images) for each in others):
        raise nothing_mixed(reference)
    try:
        mixed = Mixed(student, reference, way, seeds(student)[0], alpha=0)
    except Mismatch as error:
        if error.concerns.startswith(("ValueError", "ZeroDivisionError")):
            raise reference.named(f"{way}_fails_without_alpha") from error
        raise
    # others + 1 * (images - others) is a rounding away from the images
    if abs(mixed.lam - 1) > 1e-6 or not same(mixed.mixed, mixed.images, tolerance=1e-5):
        mixed.named(reference)
        raise Mismatch(f"With alpha=0, {way} gives lam = {mixed.lam:.3f}; it should be 1, and nothing mixed.")


@pytest.mark.component("mixup")
@pytest.mark.weight(1)
@pytest.mark.shows("mixup_mixes_nothing_without_alpha")
def test_mixup_of_nothing(student, reference):
    """With alpha=0 lam is 1, and the images are what they were."""
    mixes_nothing(student, reference, "mixup")


@pytest.mark.component("cutmix")
@pytest.mark.weight(1)
@pytest.mark.shows("cutmix_mixes_nothing_without_alpha")
def test_cutmix_of_nothing(student, reference):
    """With alpha=0 lam is 1, and the images are what they were."""
    mixes_nothing(student, reference, "cutmix")


@pytest.mark.component("mixup")
@pytest.mark.weight(1)
@pytest.mark.because("mixup_is_what_it_says")
@pytest.mark.shows("mixup_shares_depend_on_alpha")
def test_mixup_draws_by_alpha(student, reference):
    """Small alpha gives shares near 0 and 1, large alpha shares near one half."""

    def spread(alpha):
        lams = [
            Mixed(student, reference, "mixup", seed, shape=(4, 3, 6, 8), alpha=alpha).lam
            for _ in range(3)
            for seed in seeds(student)
        ]
        return float(np.mean(np.abs(np.array(lams) - 0.5)))

    small, large = spread(0.2), spread(8.0)  # 0.39 and 0.10 are to be expected
    if small < 0.28 or large > 0.2:
        raise reference.named("mixup_ignores_alpha")


@pytest.mark.component("cutmix")
@pytest.mark.weight(1)
@pytest.mark.because("cutmix_is_what_it_says")
@pytest.mark.shows("cutmix_draws_its_rectangle")
def test_cutmix_draws_size_and_place(student, reference):
    """Small alpha gives rectangles of nearly nothing or everything, large alpha middling ones, anywhere."""
    cuts = {alpha: _cuts(student, reference, alpha, FEW) for alpha in (0.2, 8.0)}
    places = [each.box for each in cuts[8.0] if each.box is not None]
    corners = [{(box[row], box[column]) for box in places} for row in (0, 1) for column in (2, 3)]
    if any(len(corner) == 1 for corner in corners):
        raise reference.named("cutmix_in_one_corner")
    # twice the middle of a rectangle, whose sides may be odd
    middles = np.array([(top + bottom, left + right) for top, bottom, left, right in places])
    if len(places) and (np.ptp(middles, axis=0) <= 1).all():
        raise reference.named("cutmix_in_the_middle")
    if alike(*cuts.values()):
        # of clipped rectangles, a few tell little
        cuts = {alpha: made + _cuts(student, reference, alpha, MANY) for alpha, made in cuts.items()}
        if alike(*cuts.values()):
            raise reference.named("cutmix_ignores_alpha")


FEW, MANY = 48, 144


def _cuts(student, reference, alpha, count):
    """What cutmix did in calls with several states of the generator."""
    # no two images are alike in any pixel, so that each rectangle can be told, however many are drawn
    images = torch.arange(6.0).view(6, 1, 1, 1) + torch.rand(6, 3, 12, 20, generator=student.random) / 2
    made = [
        student.call(
            "cutmix", images, torch.arange(6), alpha, reference.oracle.generator(student.next_seed() % 2**31)
        )
        for _ in range(count)
    ]
    return [cutmix_of(each.returned.items(4)[0].tensor(*images.shape).float(), images) for each in made]


def alike(small, large):
    """Whether rectangles of a small and of a large alpha are drawn alike.

    Whatever of the root and the border a cutmix takes into account, those of 0.2 scatter more than those of
    8, or more of them are nearly empty.
    """
    small, large = (np.array([1 - each.share for each in cuts]) for cuts in (small, large))
    emptier = (small < 0.03).mean() - (large < 0.03).mean()
    return small.std() < 1.4 * large.std() + 0.01 and emptier < 0.15


# --- the loss ---------------------------------------------------------------------------------------------


@pytest.mark.component("mixed_loss")
@pytest.mark.weight(3)
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.explains(
    "mixed_loss_is_a_number", "mixed_loss_weighs_both_labels", "mixed_loss_asks_its_criterion"
)
def test_mixed_loss_is_its_definition(student, reference, smoothing):
    """The loss is lam of labels_a and 1 - lam of labels_b, by the criterion, and so are its gradients."""
    logits, lam = student.tensor(5, 4), 0.15 + 0.3 * torch.rand((), generator=student.random).item()
    a, b = torch.tensor([0, 1, 2, 3, 0]), torch.tensor([1, 3, 2, 0, 2])
    order = torch.randperm(5, generator=student.random)
    a, b = a[order], b[order]
    criterion = student.keep(Library("torch.nn.CrossEntropyLoss", label_smoothing=smoothing))
    outcome = student.call("mixed_loss", criterion, logits, a, b, lam, gradients=True)
    value, gradient = outcome.returned.number(), outcome.gradients[1]

    def own(given, labels):
        return F.cross_entropy(given, labels, label_smoothing=smoothing)

    def result(made):
        leaf = logits.clone().requires_grad_()
        loss = made(own, leaf, a, b, lam)
        if not isinstance(loss, torch.Tensor) or not loss.requires_grad:
            return float(loss), None
        (slope,) = torch.autograd.grad(loss, leaf)
        return loss.item(), slope

    def agree(one, other):
        if (one[1] is None) != (other[1] is None) or abs(one[0] - other[0]) > 1e-5:
            return False
        return one[1] is None or torch.allclose(one[1], other[1], atol=1e-5)

    found = (value, gradient)
    if agree(found, result(reference.mixed_loss)):
        return
    other = student.keep(Library("torch.nn.CrossEntropyLoss", label_smoothing=0.6))
    if abs(student.call("mixed_loss", other, logits, a, b, lam).returned.number() - value) < 1e-6:
        raise reference.named("mixed_loss_ignores_its_criterion")
    reference.oracle.name(reference, "mixed_loss", found, result, agree)
    expected = result(reference.mixed_loss)[0]
    if abs(value - expected) < 1e-5:
        raise Mismatch("mixed_loss gives the right number, but not the gradients of its definition.")
    raise Mismatch(f"mixed_loss gives {value:.4f}; it should be {expected:.4f}.")
