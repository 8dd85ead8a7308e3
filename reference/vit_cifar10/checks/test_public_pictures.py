"""Public checks of pictures of attention and of predictions."""

import math

import numpy as np
import pytest
import torch

from grader.kit import (
    Fake,
    Mismatch,
    classes_named,
    classified_data,
    figure_text,
    pictures,
    plotted,
    shares_not_shown,
)

# how the pictures were normalized
PICTURE_MEAN, PICTURE_STD, PICTURES = (0.4, 0.5, 0.3), (0.25, 0.2, 0.3), 3
FOUR_NAMES = ("anvil", "bell", "crown", "drum")
UNDONE = "image * std + mean, for each channel, before the channels go last."


def normalized_pictures(student):
    """(data of rigged images, how they look from 0 to 1, the same normalized)."""
    data = classified_data(FOUR_NAMES, (PICTURES,), accuracy=0.5, seed=student.next_seed(), shape=(3, 16, 16))
    looks = torch.from_numpy(data.arrays["images"]) * 0.5 + 0.5
    mean, std = (torch.tensor(each).view(3, 1, 1) for each in (PICTURE_MEAN, PICTURE_STD))
    return data, looks, (looks - mean) / std


def in_color(outcome):
    """The pictures with colors in the figures, from 0 to 1, (16, 16, 3)."""
    for value in outcome.arrays.values():
        if value.shape[:2] == (16, 16) and value.ndim == 3:
            yield (value / 255 if value.max() > 1.5 else value)[..., :3]


def shows(outcome, wanted):
    """Whether a picture is one of these, (n, 3, 16, 16)."""
    return any(
        np.abs(found - each).max() < 0.02
        for found in in_color(outcome)
        for each in wanted.permute(0, 2, 3, 1).numpy()
    )


def require_restored(outcome, looks, normalized):
    """Check that images are shown as they were; what can be recognized as something else is said."""
    if shows(outcome, looks):
        return
    mean, std = (torch.tensor(each).view(3, 1, 1) for each in (PICTURE_MEAN, PICTURE_STD))
    if shows(outcome, (normalized * mean + std).clamp(0, 1)):
        raise Mismatch(
            "The normalization is undone with mean and std exchanged.",
            hint=UNDONE,
            look_for="_ * mean + std, imshow()",
        )
    if shows(outcome, normalized.clamp(0, 1)):
        raise Mismatch(
            "The images are shown as they are given, normalized; they should be shown as they were before.",
            hint=UNDONE,
            look_for="imshow(), permute() | transpose()",
        )


# >>> ONLY full
@pytest.mark.component("plot_attention")
@pytest.mark.weight(0.25)
def test_attention_is_drawn_over_the_image(student):
    """Each image is shown as it was, with its class, its map, and the map laid over it."""
    data, looks, normalized = normalized_pictures(student)
    sizes = {"image_size": 16, "patch_size": 4, "dim": 8, "depth": 1, "heads": 2}
    fake = Fake.script(
        [0.0],
        parameters={"weight": (1,)},
        methods={"attention": Fake.script([(2 * student.tensor(1, 2, 17, 17)).softmax(dim=-1)])},
        like=("VisionTransformer", sizes),
    )
    model = student.keep(fake, "plot_attention")
    student.component(model).call("eval")
    replaced = {"attention_map": Fake.script([torch.rand(16, 16, generator=student.random)])}
    labels = torch.from_numpy(data.labels)
    outcome = plotted(
        *(student, "plot_attention", model, normalized, labels, list(FOUR_NAMES), PICTURE_MEAN, PICTURE_STD),
        replace=replaced,
    )
    require_restored(outcome, looks, normalized)
    if not shows(outcome, looks):
        return
    asked = [
        np.asarray(each, dtype=float).ravel()
        for call in outcome.calls_of("attention_map")
        for each in (*call.args, *call.kwargs.values())
        if math.prod(getattr(each, "shape", ())) == looks[0].numel()
    ]
    if any(np.allclose(each, one.numpy().ravel(), atol=1e-4) for each in asked for one in looks):
        raise Mismatch(
            "attention_map gets an image whose normalization is undone; the model knows normalized ones.",
            hint="Undo the normalization in a copy, for showing alone; mul_ and add_ change the image.",
            look_for="mul_() | add_() | _ * std + mean, attention_map()",
        )
    wanted = looks.permute(0, 2, 3, 1).numpy()
    laid = any(
        axes.heat_maps or len({outcome.arrays[f"image{number}"].ndim for number in axes.images}) > 1
        for figure in outcome.figures
        for axes in figure.axes
        if axes.images
    )
    blended = any(all(np.abs(found - each).max() > 0.05 for each in wanted) for found in in_color(outcome))
    if not laid and not blended:
        raise Mismatch(
            "The map is laid over no image, or it hides the image: there is no picture of both.",
            hint="imshow(picture), and then imshow(heat, alpha=0.5) in the same axes.",
            look_for="imshow(heat, alpha=_) | imshow(_, alpha=_), imshow(heat) | imshow(heat, cmap=_)",
        )
    said = classes_named(figure_text(outcome), FOUR_NAMES)
    if not set(data.labels.tolist()) & set(said):
        raise Mismatch(
            "The images are shown without the names of their classes.",
            hint="set_title(class_names[int(label)]) for each image.",
            look_for="imshow(picture)",
        )


# <<< ONLY


@pytest.mark.component("plot_top3")
@pytest.mark.weight(0.25)
def test_top3_names_the_likeliest_classes(student):
    """Each image has its true class and the three likeliest ones."""
    data, _, normalized = normalized_pictures(student)
    shares = torch.tensor([[0.4, 0.3, 0.2, 0.1], [0.1, 0.2, 0.3, 0.4], [0.3, 0.1, 0.4, 0.2]])
    labels, sorting = torch.tensor([3, 0, 1]), "topk() | argsort() | sort()"
    outcome = plotted(
        *(student, "plot_top3", normalized, labels, shares, list(FOUR_NAMES), PICTURE_MEAN, PICTURE_STD)
    )
    for picture in pictures(outcome, data)[1]:
        true = int(labels[picture.number])
        said = set(classes_named("\n".join([*picture.captions, *picture.ticks]), FOUR_NAMES))
        others = set(range(4)) - {true}
        if said == {0, 1, 2, 3} and others <= said:
            continue
        likely = int(shares[picture.number].argmax())
        if true in said and likely not in said and len(said) == 3:
            raise Mismatch(
                "An image has the three least likely classes instead of the three likeliest: "
                f"{FOUR_NAMES[likely]!r}, its likeliest, is missing.",
                hint="The three largest probabilities, the largest first: torch.topk(3).",
                look_for=sorting,
            )
        if said == others:
            raise Mismatch(
                "An image is shown with its three likeliest classes, but without its true one, "
                f"{FOUR_NAMES[true]!r}.",
                hint="Write the true class above the three, too: class_names[int(label)].",
                look_for="set_title() | title()",
            )
    likeliest = [shares.softmax(dim=1), shares]  # by softmax once more, and as they are
    again, missing = (
        shares_not_shown(outcome, each.topk(3).values.ravel(), FOUR_NAMES) for each in likeliest
    )
    if missing and not again:
        raise Mismatch(
            "What is shown as probabilities is their softmax; they are probabilities already.",
            hint="Show them as they are.",
            look_for="softmax()",
        )
    if missing:
        raise Mismatch(
            f"The probability {missing[0]:.2f} of one of the three likeliest classes is not shown.",
            hint='Write it behind the class: f"{class_names[k]} {p:.1%}".',
            look_for=sorting,
        )


@pytest.mark.component("plot_top3")
@pytest.mark.because("top3_names_the_likeliest_classes")
@pytest.mark.weight(0.25)
def test_top3_has_the_images_as_they_were(student):
    """The images are shown as they were before they were normalized."""
    data, looks, normalized = normalized_pictures(student)
    shares, labels = student.tensor(PICTURES, 4).softmax(dim=1), torch.from_numpy(data.labels)
    outcome = plotted(
        *(student, "plot_top3", normalized, labels, shares, list(FOUR_NAMES), PICTURE_MEAN, PICTURE_STD)
    )
    require_restored(outcome, looks, normalized)
