"""Public checks of patches and positions."""

import numpy as np
import pytest

from grader.kit import Cause, Mismatch, named, same

# 3 x 3 patches of 4 x 4 pixels, 2 channels
SIDE, PATCH, CHANNELS, WIDTH = 12, 4, 2, 7
ROWS = SIDE // PATCH


def embedding(student):
    """PatchEmbedding as a function from images to tokens, with weights that are not zero by chance."""
    component = student.build("PatchEmbedding", SIDE, PATCH, CHANNELS, WIDTH).randomized()
    return lambda images: component(images, shape=(len(images), ROWS**2, WIDTH))


@pytest.mark.component("PatchEmbedding")
@pytest.mark.weight(0.25)
def test_patches_have_their_shape(student):
    """PatchEmbedding gives (batch, patches, dim)."""
    component = student.build("PatchEmbedding", 8, 4, 3, 6)
    found = component.call("", student.tensor(2, 3, 8, 8), training=False).returned.tensor()
    if tuple(found.shape) == (2, 6, 4):
        raise Mismatch(
            "For 2 images of 4 patches and dim=6, the tokens are (2, 6, 4): (batch, dim, patches); they "
            "should be (batch, patches, dim).",
            hint="Swap the last two axes at the end.",
            look_for="return",
        )
    component(student.tensor(2, 3, 8, 8), shape=(2, 4, 6))


@pytest.mark.component("PatchEmbedding")
@pytest.mark.because("patches_have_their_shape")
@pytest.mark.weight(0.25)
def test_patches_stand_row_by_row(student):
    """Each patch makes one token, and the tokens stand row by row: patch n changes token n and no other."""
    embed, count = embedding(student), ROWS**2
    image = student.tensor(1, CHANNELS, SIDE, SIDE)
    changed = image.repeat(count, 1, 1, 1)
    for number in range(count):
        row, column = divmod(number, ROWS)
        place = slice(row * PATCH, (row + 1) * PATCH), slice(column * PATCH, (column + 1) * PATCH)
        changed[number][:, place[0], place[1]] += 3 * student.tensor(CHANNELS, PATCH, PATCH)
    moves = (embed(changed) - embed(image)).abs().amax(dim=-1) > 1e-5
    seen = [moves[number].nonzero().flatten().tolist() for number in range(count)]
    if seen == [[number] for number in range(count)]:
        return
    if seen == [[number % ROWS * ROWS + number // ROWS] for number in range(count)]:
        raise Mismatch(
            "Patch 1, right of the first one, makes token 3: the tokens stand column by column.",
            hint="In the flattened grid the column changes fastest: (rows columns), not (columns rows).",
            look_for="transpose(2, 3) | permute() | rearrange() | Rearrange()",
        )
    number = next(number for number in range(count) if seen[number] != [number])
    near = all(
        number in tokens
        and all(max(abs(number // ROWS - t // ROWS), abs(number % ROWS - t % ROWS)) < 2 for t in tokens)
        for number, tokens in enumerate(seen)
    )
    if near:
        raise Mismatch(
            f"Changing the pixels of one patch changes the tokens of its neighbors, too ({len(seen[4])} "
            "tokens for the patch in the middle): the patches overlap.",
            hint="kernel_size and stride are both patch_size, and nothing is padded.",
            look_for="Conv2d() | unfold() | Unfold()",
        )
    row, column = divmod(number, ROWS)
    several = ", ".join(map(str, seen[number][:-1]))
    tokens = f"{several} and {seen[number][-1]}" if several else "".join(map(str, seen[number])) or "none"
    raise Mismatch(
        f"Of {count} patches (0 to {count - 1}), changing the pixels of patch {number} (row {row}, column "
        f"{column}) changes {f'the tokens {tokens}' if len(seen[number]) > 1 else f'token {tokens}'}. It "
        f"should change token {number} alone.",
        hint="Split height and width into (patches, pixels) each, bring both patch axes to the front, then "
        "flatten.",
        look_for="reshape() | view() | rearrange() | Rearrange()",
    )


@pytest.mark.component("PatchEmbedding")
@pytest.mark.because("patches_have_their_shape")
@pytest.mark.weight(0.25)
def test_patches_have_all_channels(student):
    """Every channel of the image reaches the tokens."""
    embed = embedding(student)
    image = student.tensor(1, CHANNELS, SIDE, SIDE)
    before = embed(image)
    for channel in range(CHANNELS):
        changed = image.clone()
        changed[:, channel] += 3 * student.tensor(SIDE, SIDE)
        if same(embed(changed), before):
            raise Mismatch(
                f"Changing channel {channel} of an image with {CHANNELS} channels changes no token.",
                hint="A patch has in_channels * patch_size**2 numbers.",
                look_for="_[:, :1] | _[:, 0] | _[:, 0:1], Conv2d(1, _)",
            )


@pytest.mark.component("PatchEmbedding")
@pytest.mark.because("patches_have_their_shape", "patches_stand_row_by_row", "patches_have_all_channels")
@pytest.mark.weight(0.25)
def test_patches_are_mapped_linearly(student):
    """The map from a patch to its token is linear: no norm and no activation."""
    embed = embedding(student)
    x, z = student.tensor(2, CHANNELS, SIDE, SIDE), student.tensor(2, CHANNELS, SIDE, SIDE)
    zero = embed(0 * x)
    if same(embed(x), embed(z)):
        raise Mismatch("The tokens are the same for any image.", cause=Cause.CONSTANT)
    if same(embed(x + z) - zero, embed(x) - zero + embed(z) - zero, tolerance=1e-3):
        return
    if same(embed(2000 * x), embed(1000 * x), tolerance=1e-2):
        raise Mismatch(
            "An image that is twice as bright gives the same tokens: they are normalized.",
            hint="Only the linear map here: the norms belong to the blocks.",
            look_for="norm() | LayerNorm()",
        )
    raise Mismatch(
        "PatchEmbedding is not linear: f(x + z) - f(0) is not (f(x) - f(0)) + (f(z) - f(0)).",
        hint="Only the linear map here: no activation, and no norm.",
        look_for="gelu() | relu() | GELU() | ReLU() | silu() | SiLU() | tanh() | sigmoid()",
    )


@pytest.mark.component("PatchEmbedding")
@pytest.mark.because("patches_have_their_shape")
@pytest.mark.weight(0.25)
def test_patches_learn_their_map(student):
    """The linear map gets gradients."""
    component = student.build("PatchEmbedding", SIDE, PATCH, CHANNELS, 6)
    missing = component.gradients(
        student.tensor(2, CHANNELS, SIDE, SIDE), student.tensor(2, ROWS**2, 6)
    ).missing
    if missing:
        raise Mismatch(
            f"{named(missing[0])} gets no gradient: it stays as it was initialized.",
            hint="Leave out detach(), .data and torch.no_grad().",
            look_for="detach() | no_grad() | _.data",
        )


@pytest.mark.component("sinusoidal_positions")
@pytest.mark.weight(0.25)
def test_positions_begin_with_zero_and_one(student):
    """At position 0 all sines are 0 and all cosines 1."""
    found = student.call("sinusoidal_positions", 5, 8).returned.array(5, 8)
    if abs(found[0].sum() - 4) > 1e-5:
        raise Mismatch(
            "At position 0, the sines should be 0 and the cosines 1.",
            hint="The positions count from 0.",
            look_for="arange(1, _)",
        )
    if abs(found[0, 0]) > 1e-5:
        raise Mismatch(
            "At position 0, column 0 holds 1; it should hold the sine of 0, which is 0.",
            hint="The sines stand in the even columns, the cosines in the odd ones.",
            look_for="cos()",
        )


def pairs_of_columns(student, tokens, dim):
    """The sines and the cosines of a table, each (tokens, dim / 2), alternating or in two halves."""
    found = student.call("sinusoidal_positions", tokens, dim).returned.array(tokens, dim)
    if dim > 2 and abs(found[0, 1]) < 1e-5:  # at position 0 a second sine
        return found[:, : dim // 2], found[:, dim // 2 :]
    return found[:, 0::2], found[:, 1::2]


@pytest.mark.component("sinusoidal_positions")
@pytest.mark.because("positions_begin_with_zero_and_one")
@pytest.mark.weight(0.25)
def test_positions_pair_a_sine_with_its_cosine(student):
    """The sine and the cosine of a pair are of the same angle: their squares add up to 1."""
    sines, cosines = pairs_of_columns(student, 7, 10)
    off = np.abs(sines**2 + cosines**2 - 1) > 1e-3
    if off.any():
        position, pair = np.argwhere(off)[0].tolist()
        raise Mismatch(
            f"With dim=10, pair {pair} (counted from 0) at position {position} holds "
            f"{sines[position, pair]:.3f} and {cosines[position, pair]:.3f}, which are not sine and cosine "
            "of one angle: their squares do not add up to 1.",
            hint="One exponent for each pair, 2i / dim: the cosine takes its sine's angle.",
            look_for="10000 ** _ | 10000.0 ** _, exp()",
        )


@pytest.mark.component("sinusoidal_positions")
@pytest.mark.because("positions_begin_with_zero_and_one", "positions_pair_a_sine_with_its_cosine")
@pytest.mark.weight(0.25)
def test_positions_turn_slower_pair_by_pair(student):
    """With dim=8 each pair turns ten times slower than the one before it: by 1, 0.1, 0.01 and 0.001."""
    sines, cosines = pairs_of_columns(student, 3, 8)
    angles = np.arctan2(sines[1], cosines[1])
    if not np.allclose(angles, [1, 0.1, 0.01, 0.001], rtol=0.02, atol=1e-5):
        doubled = np.allclose(angles, [1, 1e-2, 1e-4, 1e-6], rtol=0.05, atol=1e-6)
        raise Mismatch(
            f"From position 0 to 1, the four pairs turn by {', '.join(f'{angle:.3g}' for angle in angles)}; "
            "with dim=8 it should be by 10000^(-2i/8): 1, 0.1, 0.01 and 0.001.",
            hint="torch.arange(0, dim, 2) is 2i already." if doubled else "pos / 10000^(2i / dim)",
            look_for="10000 ** _ | 10000.0 ** _, exp(), _ ** _, log()"
            if doubled
            else "log(), _ ** _, exp() | pow()",
        )
