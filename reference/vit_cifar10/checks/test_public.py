"""The checks that students have, and run on their own machine as often as they like.

Each asks one question. The first line of its docstring is what the student reads.
"""

from dataclasses import replace

import numpy as np
import pytest
import torch

from grader.kit import AffineFake, Cause, Fake, Mismatch, answer, batches, named, same, trainable_data
from grader.kit.transformers import UnreadableWeights, attention, readings

# 3 x 3 patches of 4 x 4 pixels, 2 channels
SIDE, PATCH, CHANNELS, WIDTH = 12, 4, 2, 7
ROWS = SIDE // PATCH
DIM, HEADS, TOKENS = 22, 2, 6

# kinds of code by which a line is found
OUTPUT = "return, _ @ _.transpose()"
RANDOM = "randn() | rand() | randn_like() | rand_like() | randperm()"


def moved(part):
    """A part with other weights than its first ones: what begins with zeros shows nothing."""
    part.randomize()
    return part


def embedding(student):
    """PatchEmbedding as a function from images to tokens, with weights that are not zero by chance."""
    component = moved(student.build("PatchEmbedding", SIDE, PATCH, CHANNELS, WIDTH))
    return lambda images: component(images, shape=(len(images), ROWS**2, WIDTH))


@pytest.mark.component("PatchEmbedding")
def test_patches_have_their_shape(student):
    """PatchEmbedding gives (batch, patches, dim)."""
    component = student.build("PatchEmbedding", 8, 4, 3, 6)
    found = component.call("", student.tensor(2, 3, 8, 8), training=False).returned.tensor()
    if tuple(found.shape) == (2, 6, 4):
        raise Mismatch(
            "For 2 images of 4 patches and dim=6, the tokens are (2, 6, 4): (batch, dim, patches); they "
            "should "
            "be (batch, patches, dim).",
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
            "tokens "
            "for the patch in the middle): the patches overlap.",
            hint="kernel_size and stride are both patch_size, and nothing is padded.",
            look_for="Conv2d() | unfold() | Unfold()",
        )
    row, column = divmod(number, ROWS)
    tokens = ", ".join(map(str, seen[number])) or "none"
    raise Mismatch(
        f"Changing the pixels of patch {number} of 0 to {count - 1} (row {row}, column {column}) changes "
        f"these tokens: {tokens}. It should change token {number} alone.",
        hint="A patch's rows lie apart in memory: rearrange the axes before they are flattened.",
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


@pytest.mark.component("sinusoidal_positions")
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
            "of "
            "one angle: their squares do not add up to 1.",
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


def attention_of(student, dim=DIM, heads=HEADS, dropout=0.0):
    """The attention with weights that are not zero by chance."""
    return moved(student.build("MultiHeadSelfAttention", dim, heads, dropout=dropout))


def with_weights(attention, x, heads, training=False):
    """What it returns with return_weights=True: tokens, and weights (batch, heads, tokens, tokens)."""
    both = attention.call("", x, return_weights=True, training=training).returned
    tokens, weights = both.items(2, "values: the tokens and the weights")
    return tokens.tensor(*x.shape), weights.tensor(len(x), heads, x.shape[1], x.shape[1])


def one_head(student):
    """What one head makes of five tokens, its weights, and what each token gives by itself."""
    attention, x = attention_of(student, 12, 1), student.tensor(5, 12)
    y, weights = with_weights(attention, x[None], 1)
    alone = attention(x[:, None], shape=(5, 1, 12))[:, 0]
    return x, y[0], weights[0, 0], alone


@pytest.mark.component("MultiHeadSelfAttention")
def test_attention_has_its_shapes(student):
    """Tokens keep their shape; with return_weights=True there are weights for each head, too."""
    attention = student.build("MultiHeadSelfAttention", 12, 3)
    x = student.tensor(2, 5, 12)
    attention(x, shape=(2, 5, 12))
    both = attention.call("", x, return_weights=True, training=False).returned.items(2, "values")
    both[0].tensor(2, 5, 12)
    if tuple(both[1].tensor().shape) == (2, 5, 5):
        raise Mismatch(
            "The returned weights are one matrix for each image, (batch, tokens, tokens); there should be "
            "one "
            "for each head: (batch, heads, tokens, tokens).",
            hint="Return the softmax as it is, without a mean over the heads.",
            look_for="return",
        )
    both[1].tensor(2, 3, 5, 5)


@pytest.mark.component("MultiHeadSelfAttention")
@pytest.mark.because("attention_has_its_shapes")
@pytest.mark.weight(0.25)
def test_attention_weights_are_shares(student):
    """The weights are shares: what a token looks at adds up to 1 over all tokens, in each head."""
    x = student.tensor(2, TOKENS, DIM)
    _, weights = with_weights(attention_of(student), x, HEADS)
    if weights.min() < -1e-6:
        raise Mismatch(
            "Some of the returned weights are negative; a softmax never is.",
            hint="Return what the softmax gives, not the scores that go into it.",
            look_for="return",
        )
    rows, columns, heads = (
        same(sums, torch.ones(sums.shape), tolerance=1e-3)
        for sums in (weights.sum(dim=-1), weights.sum(dim=-2), weights.sum(dim=1))
    )
    if rows:
        return
    softmax = "softmax() | Softmax(), sum()"
    if columns:
        _, y, own, alone = one_head(student)
        if same(y, own.T @ alone, tolerance=1e-3):
            raise Mismatch(
                "The returned weights are transposed: their columns add up to 1, and row i does not say what "
                "token i looks at.",
                hint="Return the weights as they are multiplied with v: (batch, heads, queries, keys).",
                look_for="return",
            )
        raise Mismatch(
            "The columns of the weights add up to 1, not the rows: the softmax runs over the queries.",
            hint="softmax(dim=-1), over the keys, for scores of (batch, heads, queries, keys).",
            look_for=softmax,
        )
    if heads:
        raise Mismatch(
            "The weights of the heads add up to 1, not those of a row: the softmax runs over the heads.",
            hint="softmax(dim=-1), over the keys, for scores of (batch, heads, queries, keys).",
            look_for=softmax,
        )
    raise Mismatch(
        "The rows of the returned weights do not add up to 1.",
        hint="softmax(dim=-1) on scores of (batch, heads, queries, keys), returned as it is.",
        look_for=softmax,
    )


@pytest.mark.component("MultiHeadSelfAttention")
@pytest.mark.because("attention_has_its_shapes", "attention_weights_are_shares")
@pytest.mark.weight(0.25)
def test_attention_averages_by_its_weights(student):
    """With one head, a token's output is the mean of what each token gives by itself, by its weights."""
    x, y, weights, alone = one_head(student)
    mean = weights @ alone
    if same(y, mean, tolerance=1e-3):
        return
    if same(y - mean, x - weights @ x, tolerance=1e-3):
        raise Mismatch(
            "The attention adds its input to the result.",
            hint="Return what the last projection gives: it is the block that adds x.",
            look_for="x + _ | _ + x",
        )
    raise Mismatch(
        "With one head, a token's output is not the mean of what each token gives by itself, weighted by the "
        "weights that are returned.",
        hint="weights @ v, and the projection of that; the weights are (batch, heads, queries, keys).",
        look_for="_ @ v | matmul(_, v) | einsum()",
    )


@pytest.mark.component("MultiHeadSelfAttention")
@pytest.mark.because("attention_has_its_shapes", "attention_weights_are_shares")
@pytest.mark.weight(0.25)
def test_attention_knows_no_order(student):
    """Attention knows no order: reordering tokens reorders their outputs, and changes nothing else."""
    attention, x = attention_of(student), student.tensor(2, TOKENS, DIM)
    y, turned = (attention(tokens, shape=(2, TOKENS, DIM)) for tokens in (x, x.flip(1)))
    if not same(turned.flip(1), y, tolerance=1e-3):
        raise Mismatch(
            "With the tokens in another order, a token gets a different output.",
            hint="Split and join the heads by a reshape and a transpose, not by one alone: what the heads "
            "give "
            "is (batch, heads, tokens, dim / heads), and tokens must come before heads to be joined.",
            look_for="(_ @ _).reshape() | (_ @ _).view(), reshape(), view()",
        )


@pytest.mark.component("MultiHeadSelfAttention")
@pytest.mark.because(
    "attention_weights_are_shares", "attention_averages_by_its_weights", "attention_knows_no_order"
)
@pytest.mark.weight(0.25)
def test_attention_scales_and_projects(student):
    """The scores are divided by sqrt(dim / heads), and what the heads give is projected."""
    component, size = attention_of(student), DIM // HEADS
    x = student.tensor(2, TOKENS, DIM)
    y = component(x, shape=(2, TOKENS, DIM))
    try:
        found = list(readings(component.weights(), dim=DIM, heads=HEADS, dim_head=size))
    except UnreadableWeights:
        return

    def fits(scale, projected=True):
        return any(
            same(y, attention(x, parts if projected else replace(parts, out=None), scale=scale))
            for parts in found
        )

    if fits(None):
        return
    if fits(None, projected=False):
        raise Mismatch(
            "What the heads give is returned as it is: the output projection is missing.",
            hint="A last linear layer from dim to dim, over the heads' results side by side.",
            look_for="return",
        )
    scores = "_ @ _.transpose() | _ @ _.mT | matmul(_, _.transpose()) | bmm(_, _.transpose())"
    for scale, said in ((1.0, "not divided by anything"), (DIM**-0.5, "divided by sqrt(dim)")):
        if fits(scale):
            raise Mismatch(
                f"The scores are {said}; they should be divided by sqrt(dim / heads), the root of a head's "
                "width.",
                hint="q @ k.transpose(-2, -1) / sqrt(dim / heads), before the softmax.",
                look_for=f"{scores}, softmax()"
                if scale == 1
                else "_ ** -0.5 | _ ** 0.5 | sqrt() | rsqrt(), scale",
            )
    for scale, said in ((size**0.5, "multiplied by sqrt(dim / heads)"), (1 / size, "divided by dim / heads")):
        if fits(scale):
            raise Mismatch(
                f"The scores are {said}; they should be divided by sqrt(dim / heads).",
                hint="q @ k.transpose(-2, -1) / sqrt(dim / heads), once, before the softmax.",
                look_for=f"_ ** -0.5 | _ ** 0.5 | sqrt() | rsqrt(), scale, {scores}",
            )


@pytest.mark.component("MultiHeadSelfAttention")
@pytest.mark.because("attention_has_its_shapes")
@pytest.mark.weight(0.25)
def test_attention_drops_out(student):
    """With dropout, the attention drops weights in training, and none in evaluation."""
    attention, x = attention_of(student, dropout=0.5), student.tensor(2, TOKENS, DIM)
    if not same(*attention.repeated(x, times=2)):
        raise Mismatch(
            "In evaluation two calls with the same input give different outputs.",
            hint="nn.Dropout is off in evaluation by itself; F.dropout needs training=self.training.",
            look_for=f"F.dropout(), dropout(), {RANDOM}",
            cause=Cause.RANDOM,
        )
    if same(*attention.repeated(x, times=2, train=True)):
        raise Mismatch(
            "With dropout=0.5, two calls in training give the same output: nothing is dropped.",
            hint="nn.Dropout(dropout), applied to the weights before they are multiplied with v.",
            look_for="dropout() | Dropout(), _ @ v | matmul(_, v)",
        )


@pytest.mark.component("MultiHeadSelfAttention")
@pytest.mark.because("attention_has_its_shapes", "attention_weights_are_shares")
@pytest.mark.weight(0.25)
def test_attention_weights_are_shown_before_dropout(student):
    """The weights that are returned are the softmax, before anything is dropped."""
    attention, x = attention_of(student, dropout=0.5), student.tensor(2, TOKENS, DIM)
    rest, trained = (with_weights(attention, x, HEADS, training=mode)[1] for mode in (False, True))
    zeros = int(((trained == 0) & (rest > 0)).sum())
    if zeros:
        raise Mismatch(
            f"In training with dropout=0.5, {zeros} of the {trained.numel()} weights that are returned are "
            "0: "
            "they were dropped.",
            hint="Keep the softmax before anything is dropped, and return that.",
            look_for="dropout()",
        )


def block_around(student, attention, **settings):
    """The block around a fake of its attention; None where it uses none: that is looked at when graded."""
    replaced = {"MultiHeadSelfAttention": attention}
    block = student.build("EncoderBlock", DIM, HEADS, replace=replaced, **settings)
    return block if block.constructions("MultiHeadSelfAttention") else None


def gains(block):
    """The names of the norms' gains: vectors of ones at the beginning."""
    return [
        name for name, value in block.weights().items() if value.numel() == DIM and bool((value == 1).all())
    ]


def with_silent_mlp(block):
    """The block with an MLP that gives 0, and norms that only normalize."""
    kept = gains(block)
    trained = [p.name for p in block.parameters if p.trainable]
    weights = block.weights()
    block.set_weights({name: 0 * weights[name] for name in trained if name not in kept})
    return block


def is_normalized(x):
    """Whether each token has the mean 0 and the variance 1 over its features."""
    return bool(x.mean(dim=-1).abs().max() < 0.01 and (x.pow(2).mean(dim=-1) - 1).abs().max() < 0.05)


NO_ATTENTION = AffineFake(scale=(0.0,), heads=HEADS)
MLP = "mlp() | feed_forward() | ff() | ffn()"
ATTENTION = "attention() | attn()"


@pytest.mark.component("EncoderBlock")
def test_block_keeps_the_shape(student):
    """EncoderBlock gives tokens of its input's shape."""
    student.build("EncoderBlock", 12, 3)(student.tensor(2, 5, 12), shape=(2, 5, 12))


@pytest.mark.component("EncoderBlock")
@pytest.mark.weight(0.25)
def test_block_normalizes_for_its_attention(student):
    """The attention gets normalized tokens: mean 0 and variance 1 over the features."""
    block = block_around(student, NO_ATTENTION)
    if block is None:
        return
    x = 2 * student.tensor(2, TOKENS, DIM) + 1
    y = with_silent_mlp(block)(x, shape=(2, TOKENS, DIM))
    if is_normalized(block.inputs_of("MultiHeadSelfAttention")[0]):
        return
    if is_normalized(y):
        raise Mismatch(
            "The norms come after the sums: what the block returns is normalized, and what its attention "
            "gets "
            "is not.",
            hint="x + attention(norm(x)), not norm(x + attention(x)); the same for the MLP.",
            look_for="body",
        )
    raise Mismatch(
        "The attention gets tokens that are not normalized.",
        hint="x + attention(norm(x)): the norm comes first, on what goes into the attention.",
        look_for=f"attention(x) | attn(x), {ATTENTION}",
    )


@pytest.mark.component("EncoderBlock")
@pytest.mark.because("block_keeps_the_shape", "block_normalizes_for_its_attention")
@pytest.mark.weight(0.25)
def test_block_adds_to_its_input(student):
    """Where the MLP gives 0, the block returns its input plus what its attention gives."""
    fake = AffineFake(scale=(0.7,), shift=(0.3,), roll=1, heads=HEADS)
    block = block_around(student, fake)
    if block is None:
        return
    x = 2 * student.tensor(2, TOKENS, DIM) + 1
    y = with_silent_mlp(block)(x, shape=(2, TOKENS, DIM))
    received = block.inputs_of("MultiHeadSelfAttention")[0]
    made = answer(fake, 0, received)
    if same(y, x + made, tolerance=1e-3):
        return
    if same(y, made, tolerance=1e-3):
        raise Mismatch(
            "What the attention gives replaces the tokens; it should be added to them.",
            hint="x = x + attention(norm(x))",
            look_for=ATTENTION,
        )
    if same(y, received + made, tolerance=1e-3):
        raise Mismatch(
            "What the attention gives is added to the normalized tokens; it should be added to the tokens as "
            "they came.",
            hint="x = x + attention(norm(x)): the x in front of the sum is not normalized.",
            look_for="body",
        )
    if float(y.abs().max()) < 1e-5:
        raise Mismatch(
            "Where the MLP gives 0, the block returns 0: what the MLP gives replaces the tokens.",
            hint="x = x + mlp(norm(x))",
            look_for=MLP,
        )
    if is_normalized(y):
        raise Mismatch(
            "Where the MLP gives 0, the block returns normalized tokens.",
            hint="x = x + mlp(norm(x)): the x in front of the sum is not normalized, nor is the sum.",
            look_for=MLP,
        )
    raise Mismatch(
        "Where the MLP gives 0, the block does not return its input plus what its attention gave.",
        hint="x = x + attention(norm(x)), then x = x + mlp(norm(x)).",
    )


def added_by_mlp(block, x):
    """What the MLP adds to the block's input and its attention's answer, which is 0."""
    return block(x, shape=tuple(x.shape)) - x


@pytest.mark.component("EncoderBlock")
@pytest.mark.because("block_adds_to_its_input")
@pytest.mark.weight(0.25)
def test_block_normalizes_for_its_mlp(student):
    """The MLP gets normalized tokens: what it adds does not grow with the tokens."""
    block = block_around(student, NO_ATTENTION)
    if block is None:
        return
    moved(block)
    x = 2 * student.tensor(2, TOKENS, DIM)
    if not same(added_by_mlp(block, 3 * x), added_by_mlp(block, x), tolerance=1e-2):
        raise Mismatch(
            "For tokens that are three times as large, the MLP adds something else: it gets tokens that are "
            "not normalized.",
            hint="x = x + mlp(norm(x)), with a norm of its own.",
            look_for=f"mlp(x) | feed_forward(x) | ff(x) | ffn(x), {MLP}",
        )


@pytest.mark.component("EncoderBlock")
@pytest.mark.because("block_adds_to_its_input", "block_normalizes_for_its_mlp")
@pytest.mark.weight(0.25)
def test_block_has_its_mlp_after_its_attention(student):
    """The MLP gets what the attention has added to, not the block's input."""
    fake = AffineFake(roll=1, heads=HEADS)  # token 1 gets what token 0 was
    block = block_around(student, fake)
    if block is None:
        return
    moved(block)
    x = student.tensor(2, TOKENS, DIM)
    changed = x.clone()
    changed[:, 0] += 2 * student.tensor(DIM)
    added = []
    for tokens in (x, changed):
        y = block(tokens, shape=tuple(x.shape))
        made = answer(fake, 0, block.inputs_of("MultiHeadSelfAttention")[0])
        added.append((y - tokens - made)[:, 1])
    if same(*added, tolerance=1e-4):
        raise Mismatch(
            "What the MLP adds to a token does not depend on what the attention added to it: the MLP gets "
            "the "
            "block's input.",
            hint="First x = x + attention(norm(x)), then x = x + mlp(norm(x)) with the new x.",
            look_for=MLP,
        )


@pytest.mark.component("EncoderBlock")
@pytest.mark.because("block_adds_to_its_input")
@pytest.mark.weight(0.25)
def test_block_has_an_mlp_that_is_not_linear(student):
    """The MLP has an activation between its two linear layers."""
    block = block_around(student, NO_ATTENTION)
    if block is None:
        return
    moved(block)
    x = 2 * student.tensor(2, TOKENS, DIM)
    one, other, zero = (added_by_mlp(block, tokens) for tokens in (x, -x, 0 * x))
    if same(one + other, 2 * zero, tolerance=1e-3):
        raise Mismatch(
            "The MLP is linear: what it adds for x and for -x cancels out, but for the biases.",
            hint="nn.GELU() between the two linear layers; without it they are just one.",
            look_for="Sequential()",
        )


@pytest.mark.component("EncoderBlock")
@pytest.mark.weight(0.25)
def test_block_passes_its_sizes_on(student):
    """The attention gets dim and heads, and the MLP grows with mlp_ratio."""
    replaced = {"MultiHeadSelfAttention": AffineFake(heads=11)}
    small, large = (
        student.build("EncoderBlock", DIM, 11, mlp_ratio=ratio, replace=replaced) for ratio in (2.0, 3.0)
    )
    for given in small.constructions("MultiHeadSelfAttention"):
        for name, size in (("heads", 11), ("dim", DIM)):
            if name in given and given[name] != size:
                raise Mismatch(
                    f"The block was given {name}={size}, and makes its attention with {name}={given[name]}.",
                    hint="Hand it on: MultiHeadSelfAttention(dim, heads, dropout).",
                    look_for="MultiHeadSelfAttention()",
                )
    grown = large.parameter_count - small.parameter_count
    if grown < 2 * DIM * DIM:
        raise Mismatch(
            f"With mlp_ratio=3 instead of 2 the block has {grown} more parameters; an MLP whose two layers "
            f"have the hidden width mlp_ratio * dim has at least {2 * DIM * DIM} more (dim={DIM}).",
            hint="nn.Linear(dim, hidden) and nn.Linear(hidden, dim), where hidden = int(dim * mlp_ratio).",
            look_for="Linear(dim, _)",
        )


@pytest.mark.component("EncoderBlock")
@pytest.mark.because("block_normalizes_for_its_attention", "block_normalizes_for_its_mlp")
@pytest.mark.weight(0.25)
def test_block_has_two_norms(student):
    """The attention and the MLP have a norm each, with weights of their own."""
    block = block_around(student, NO_ATTENTION)
    if block is None:
        return
    found = gains(block)
    if len(found) != 1:
        return
    moved(block)
    x, after = 2 * student.tensor(2, TOKENS, DIM), []
    for factor in (1, 2):
        block.set_weights({found[0]: factor * block.weights()[found[0]]})
        added = added_by_mlp(block, x)
        after.append((block.inputs_of("MultiHeadSelfAttention")[0], added))
    (seen, added), (seen_then, added_then) = after
    if not same(seen, seen_then) and not same(added, added_then):
        raise Mismatch(
            f"{named(found[0])} changes what the attention gets and what the MLP adds: both share one norm.",
            hint="Two norms, nn.LayerNorm(dim) each: one for the attention, one for the MLP.",
            look_for="LayerNorm(), norm2",
        )


@pytest.mark.component("VisionTransformer")
@pytest.mark.parametrize("pool", ["cls", "mean"])
def test_model_gives_scores(student, pool):
    """An image becomes a score for every class, with either way of pooling and either kind of positions."""
    for positions in ("learned", "sinusoidal"):
        sizes = {"image_size": 8, "num_classes": 5, "dim": 12, "depth": 2, "heads": 3}
        model = student.build("VisionTransformer", **sizes, positions=positions, pool=pool)
        model(student.tensor(2, 3, 8, 8), shape=(2, 5))
        tokens = 5 if pool == "cls" else 4
        shown = model.call("attention", student.tensor(2, 3, 8, 8), training=False)
        shown.returned.tensor(2, 3, tokens, tokens)


# >>> ONLY full
@pytest.mark.component("attention_map")
def test_map_is_as_large_as_the_image(student):
    """attention_map gives a number for each pixel, 1 at most."""
    weights = torch.full((1, 2, 5, 5), 0.2)
    model = Fake.script(
        [0.0],
        parameters={"weight": (1,)},
        methods={"attention": Fake.script([weights])},
        like=("VisionTransformer", {"image_size": 8, "patch_size": 4, "dim": 8, "depth": 1, "heads": 2}),
    )
    found = student.call("attention_map", model, student.tensor(3, 8, 8)).returned.array(8, 8)
    if found.max() > 1 + 1e-6:
        raise Mismatch("The map's largest value should be 1.")


@pytest.mark.component("BasicBlock")
def test_residual_block_has_its_shape(student):
    """BasicBlock with more channels and stride=2 gives the shape that it should."""
    student.build("BasicBlock", 4, 6, 2)(student.tensor(2, 4, 8, 8), shape=(2, 6, 4, 4))


@pytest.mark.component("ResNet18")
def test_resnet_gives_scores(student):
    """An image becomes a score for every class."""
    student.build("ResNet18", 5, 4)(student.tensor(2, 3, 32, 32), shape=(2, 5))


# <<< ONLY


@pytest.mark.component("parameter_table")
def test_table_has_names_and_numbers(student):
    """parameter_table gives pairs of a name and a number."""
    made = student.build("VisionTransformer", image_size=8, num_classes=5, dim=12, depth=2, heads=3)
    for row in student.call("parameter_table", made).returned.items(None, "rows"):
        name, number = row.items(2, "values: a name and a number")
        name.text()
        number.whole_number(0)


@pytest.mark.component("warmup_cosine")
def test_schedule_is_a_share(student):
    """The factor lies between 0 and 1."""
    for step in (0, 5, 10, 15):
        student.call("warmup_cosine", step, 5, 15).returned.number(0, 1)


@pytest.mark.component("train_epoch")
def test_epoch_returns_two_numbers(student):
    """train_epoch returns the mean loss and the accuracy."""
    data = trainable_data(("a", "b"), (4, 2), features=3, seed=student.next_seed())
    run = student.run("train_epoch", data)
    if len(run.returned) != 2 or not 0 <= run.returned[1] <= 1:
        raise Mismatch("train_epoch should return two numbers: the mean loss, and the accuracy from 0 to 1.")


@pytest.mark.component("evaluate")
def test_evaluate_returns_a_dictionary(student):
    """evaluate returns loss, accuracy, targets, predictions and probabilities."""
    criterion = Fake.script([torch.tensor(0.5)], kind="function", name="criterion")
    loader = batches(torch.zeros(3, 3, 8, 8), torch.tensor([0, 1, 1]))
    model = Fake.script([torch.tensor([[1.0, 0.0], [0.0, 1.0], [2.0, 0.0]])])
    returned = student.call("evaluate", model, loader, criterion, torch.device("cpu")).returned
    returned.at("loss").number(0)
    returned.at("accuracy").number(0, 1)
    for name in ("targets", "predictions"):
        returned.at(name).items(3, name)
    returned.at("probabilities").array(3, 2)


@pytest.mark.component("fit")
def test_fit_trains_each_epoch(student):
    """fit trains for as many epochs as it is asked to, and returns its history."""
    evaluation = {
        "loss": 0.5, "accuracy": 0.5, "targets": torch.tensor([0]),
        "predictions": torch.tensor([0]), "probabilities": torch.tensor([[1.0, 0.0]]),
    }  # fmt: skip
    fakes = {"train_epoch": Fake.script([(0.5, 0.5)]), "evaluate": Fake.script([evaluation])}
    model = student.keep(Fake.script([torch.zeros(2, 2)], parameters={"weight": (2, 2)}), "fit")
    loader = batches(torch.zeros(2, 3, 8, 8), torch.tensor([0, 1]), [1, 1])
    outcome = student.call(
        "fit", model, {"train": loader, "validation": loader}, 2, torch.device("cpu"), replace=fakes
    )
    calls = outcome.calls_of("train_epoch")
    if calls and len(calls) != 2:
        raise Mismatch(f"fit(..., epochs=2) trains {len(calls)} epochs.")


@pytest.mark.component("classification_metrics")
def test_metrics_are_there(student):
    """classification_metrics gives the confusion matrix and the measures of each class."""
    returned = student.call(
        "classification_metrics", np.array([0, 1, 1]), np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]])
    ).returned
    returned.at("confusion").items(2, "rows")
    for name in ("precision", "recall", "f1", "support", "roc_auc"):
        returned.at(name).items(2, "numbers, one for each class")


@pytest.mark.component("export_metrics")
def test_export_writes_a_file(student):
    """export_metrics writes a CSV."""
    outcome = student.call("export_metrics", {"vit": {"accuracy": 0.5}}, "metrics.csv", reads=["metrics.csv"])
    outcome.file("metrics.csv")


@pytest.mark.component("plot_confusion_matrix")
def test_confusion_matrix_draws(student):
    """plot_confusion_matrix draws a figure."""
    if not student.call(
        "plot_confusion_matrix", np.array([[3, 1], [0, 4]]), ["a", "b"], figures=True
    ).figures:
        raise Mismatch("plot_confusion_matrix draws nothing.")


@pytest.mark.component("plot_roc")
def test_roc_draws(student):
    """plot_roc draws a figure."""
    shares = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]])
    if not student.call("plot_roc", np.array([0, 1, 1]), shares, ["a", "b"], figures=True).figures:
        raise Mismatch("plot_roc draws nothing.")
