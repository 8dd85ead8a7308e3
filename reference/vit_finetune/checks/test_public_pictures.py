"""Public checks of patches and attention as pictures."""

import math

import numpy as np
import pytest
import torch

from grader.kit import Mismatch, plotted

DEPTH = 4  # blocks of the given model
MEAN, STD = (0.4, 0.5, 0.3), (0.25, 0.2, 0.3)


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
@pytest.mark.weight(0.25)
def test_patches_are_drawn(student):
    """show_patches draws a figure with images in it."""
    outcome = plotted(student, "show_patches", student.tensor(3, 16, 16), 8, (0.5,) * 3, (0.2,) * 3)
    if not any(axes.images or axes.heat_maps for figure in outcome.figures for axes in figure.axes):
        raise Mismatch(
            "No image is drawn: neither the given one nor its patches.",
            hint="imshow for the image, and for each patch in an axes of its own.",
            look_for="plot()",
        )


@pytest.mark.component("show_patches")
@pytest.mark.because("patches_are_drawn")
@pytest.mark.weight(0.25)
def test_patches_are_cut_from_the_image(student):
    """Every patch is shown as it was before the image was normalized, in its place."""
    looks, image = normalized(student, 16)
    outcome = plotted(student, "show_patches", image, 4, MEAN, STD)
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
        if not list(colors(outcome)):
            raise Mismatch(
                "No image is drawn: neither the given one nor its patches.",
                hint="imshow for the image, and for each patch in an axes of its own.",
                look_for="plot()",
            )
        framed = any(axes.lines and axes.images for figure in outcome.figures for axes in figure.axes)
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
@pytest.mark.weight(0.25)
def test_attention_is_drawn(student):
    """show_attention draws a figure."""
    model = student.build("build_model", 4)
    plotted(student, "show_attention", model, student.tensor(3, 32, 32), (0.5, 0.5, 0.5), (0.2, 0.2, 0.2))


DIM, HEADS, WIDE = 96, 4, 24  # of the given model: 4 heads of 24 features
SIDE = 8  # patches in a row of an image
BRIGHT = ((1, 2), (2, 6), (5, 3), (6, 1))  # the patch to which each head's class token attends
ODDS = (1e5, 1e5, 400.0, 400.0)  # how much more than to another token
SHARED = (BRIGHT[0], BRIGHT[1], BRIGHT[0], BRIGHT[0])  # three heads attend to one patch, and one to another
OF_FIRST_BLOCK, OF_PATCHES = (7, 5), (3, 0)  # what others attend to


def rigged_attention(weights, bright=BRIGHT):
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
            changed[name] = 100 * torch.eye(DIM)[None, : held.shape[1]]  # the norm divides by their size
    for block in (0, DEPTH - 1):
        matrix, bias = torch.zeros(3 * DIM, DIM), torch.zeros(3 * DIM)
        for head in range(HEADS):
            # the first feature of a query says that it is the class token's, the second that it is a patch's
            own, other = head * WIDE, head * WIDE + 1
            matrix[own, 0], bias[own] = size, 1 / DIM
            matrix[other, 0], bias[other] = -size, 1 - 1 / DIM
            wanted = (bright[head], OF_PATCHES) if block else (OF_FIRST_BLOCK, OF_PATCHES)
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


def require_mean_of_heads(student, model):
    """Check that a patch to which three heads attend is brighter than one to which a single head does."""
    model.set_weights(rigged_attention(model.weights(), SHARED))
    outcome = plotted(student, "show_attention", model, normalized(student, 32)[1], MEAN, STD)
    ratios = [float(heat[SHARED[1]] / max(heat[SHARED[0]], 1e-9)) for heat in maps_of_patches(outcome)]
    if ratios and all(ratio > 0.7 for ratio in ratios):
        raise Mismatch(
            "In a known model three heads attend to one patch and one head to another, and both are equally "
            "bright in the map: it shows the strongest head at each patch.",
            hint="The mean over the heads, not the largest of their weights.",
            look_for="max() | amax()",
        )


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
        maps_of_patches(plotted(student, "show_attention", model, normalized(student, 32)[1], MEAN, STD))
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
        if places == wanted and 0.7 < share < 0.99:
            require_mean_of_heads(student, model)
            return
    shifted = {divmod(SIDE * row + column + 1, SIDE) for row, column in BRIGHT}
    ways = (
        (
            places == wanted and share >= 0.99,
            "The map has the right places, but its shares are those of tokens that are not normalized.",
            "In a block, norm1 comes before the attention: attn.qkv is given norm1(tokens).",
            "_.qkv() | _.attn.qkv()",
        ),
        (
            places == wanted and 0.2 < share < 0.4,
            "The map has the right places, but its shares are those of scores that are half as large as they "
            "should be.",
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
    bright = ", ".join(map(str, sorted(places)[:6]))
    raise Mismatch(
        "The class token of a known model attends to the patches (1, 2), (2, 6), (5, 3) and (6, 1), by row "
        f"and column; the map is bright {f'at {bright}' if bright else 'at no patch'}.",
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
        alike(each, looks) for each in colors(plotted(student, "show_attention", model, image, MEAN, STD))
    ):
        raise Mismatch(
            "No picture in the figure is the image as it was before it was normalized.",
            hint="image * std + mean, channel by channel.",
            look_for="imshow(image.permute()) | imshow(_.permute().clamp().numpy()), imshow()",
        )
