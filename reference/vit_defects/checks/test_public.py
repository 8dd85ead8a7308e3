"""The public checks: students have them, and run them on their own machine as often as they like.

Each asks one question. The first line of its docstring is what the student reads.
"""

import math
import re
from collections import Counter

import pytest

from grader.kit import AffineFake, Cause, Mismatch, answer, named, same

DEFAULTS = {
    "image_size": 28,
    "patch_size": 4,
    "num_classes": 6,
    "dim": 64,
    "depth": 6,
    "heads": 4,
    "mlp_dim": 128,
}
# sizes that all differ, so that one in the place of another shows
DIM, HEADS, DIM_HEAD, HIDDEN, DEPTH = 22, 5, 3, 31, 3
# 3 x 3 patches of 5 x 5 pixels, 2 channels: nothing is as in the handout's default
OPTIONS = {
    "image_size": 15,
    "patch_size": 5,
    "num_classes": 7,
    "dim": DIM,
    "depth": DEPTH,
    "heads": HEADS,
    "mlp_dim": HIDDEN,
    "channels": 2,
    "dim_head": 6,
}

# kinds of code by which a line is found
LOSSES = "cross_entropy() | nll_loss() | criterion() | loss_fn()"
MAPS = "heatmap() | imshow() | matshow() | pcolormesh() | ConfusionMatrixDisplay() | from_predictions()"
RANDOM = "randperm() | shuffle(), rand() | randn() | rand_like() | randn_like()"
CAPTIONS = "set_title() | title() | set_xlabel() | xlabel() | text() | annotate()"


def moved(part):
    """A part with other weights than its first ones: a last layer that begins with zeros shows nothing."""
    part.randomize(0.3)
    return part


def require_dropout(built, x, rate="dropout"):
    """Check that dropout acts in training, and only there, and only if it is asked for.

    Args:
        built: rate -> the part with that dropout: called with `x` and `times`, it gives so many outputs.
        x: What it is called with.
        rate: The argument that is the rate.
    """
    half, off = built(0.5), built(0.0)
    if not same(*half(x, times=2)):
        is_dropout = same(*off(x, times=2))
        raise Mismatch(
            "In evaluation two calls with the same input give different outputs.",
            hint="nn.Dropout is off in evaluation by itself; F.dropout needs training=self.training."
            if is_dropout
            else "Look in forward for what is drawn at random, or kept from one call to the next.",
            look_for="dropout() | Dropout()" if is_dropout else RANDOM,
            cause=Cause.RANDOM,
        )
    if same(*half(x, times=2, train=True)):
        raise Mismatch(
            f"With {rate}=0.5, two calls in training give the same output: nothing is dropped.",
            hint=f"nn.Dropout({rate}), applied where the docstring says.",
            look_for="dropout() | Dropout(), Sequential()",
        )
    if not same(*off(x, times=2, train=True)):
        raise Mismatch(
            f"With {rate}=0, two calls in training give different outputs.",
            hint=f"Use the argument {rate} as the rate, not a number of your own.",
            look_for="dropout() | Dropout()",
        )


# first, because it needs nothing but the text of the file: what follows waits until that is loaded
@pytest.mark.component("submission")
def test_names_are_the_templates(student):
    """Every graded part has exactly the name of the template."""
    for near in student.program.near_names:
        raise Mismatch(
            f"{named(near.found)} was taken for `{near.expected}` and graded as such.",
            hint=f"Call it `{near.expected}`.",
            diagnosis="near_name",
            where=str(near.place),
        )


@pytest.mark.component("submission")
def test_file_can_be_loaded(student):
    """The file can be loaded, and every graded part is in it."""
    problems = student.loaded.problems
    if problems:
        first = problems[0]
        raise Mismatch(f"Loading it raised {first}.", where=first.where)
    graded = {
        *("PreNorm", "FeedForward", "Attention", "Transformer", "ViT"),
        *("train_epoch", "evaluate", "plot_confusion_matrix", "plot_classwise_predictions"),
    }
    for missing in sorted(graded - set(student.loaded.kinds)):
        raise student.missing(missing)


@pytest.mark.component("PreNorm")
@pytest.mark.weight(0.25)
def test_prenorm_keeps_the_shape(student):
    """PreNorm passes x through the module that it wraps: (batch, tokens, dim) stays (batch, tokens, dim)."""
    x = student.tensor(2, 5, 22)
    prenorm = student.build("PreNorm", 22, inner=AffineFake())
    prenorm(x, shape=(2, 5, 22))
    if len(prenorm.inputs_of("inner")) != 1:
        raise Mismatch(
            f"PreNorm called the wrapped module {len(prenorm.calls)} times instead of once.",
            look_for="fn()",
        )


@pytest.mark.component("PreNorm")
@pytest.mark.weight(0.25)
def test_prenorm_normalizes(student):
    """The module that PreNorm wraps receives normalized tokens: mean 0 and variance 1 over the features."""
    prenorm = student.build("PreNorm", DIM, inner=AffineFake())
    prenorm(4 * student.tensor(3, 5, DIM) + 2 * student.tensor(3, 1, DIM) + 3, shape=(3, 5, DIM))
    received = prenorm.inputs_of("inner")[0]
    means, sizes = received.mean(dim=-1).abs().max(), received.pow(2).mean(dim=-1)
    if means > 0.01 or (sizes - 1).abs().max() > 0.1:
        raise Mismatch(
            "What the wrapped module receives is not normalized: over the features of a token the mean is "
            "not 0, or the variance not 1.",
            hint="nn.LayerNorm(dim) on x, before fn is called.",
            look_for="softmax() | mean() | var() | std() | rsqrt(), fn()",
        )


@pytest.mark.component("PreNorm")
@pytest.mark.weight(0.25)
def test_prenorm_adds_nothing(student):
    """PreNorm returns what the wrapped module returns, and adds nothing: no residual here."""
    inner = AffineFake(scale=(1.7,), shift=(0.4,), roll=1)
    prenorm = student.build("PreNorm", DIM, inner=inner)
    x = 2 * student.tensor(3, 5, DIM) + 1
    y = prenorm(x, shape=(3, 5, DIM))
    received = prenorm.inputs_of("inner")[-1]
    made = answer(inner, -1, received)
    if same(y, made + x):
        raise Mismatch(
            "PreNorm adds x to what the wrapped module returns.",
            hint="Return what fn returns: the Transformer adds the residual.",
            look_for="fn() + _ | _ + fn(), _ + _, fn()",
            diagnosis="prenorm_residual",
        )
    if same(y, made + received):
        raise Mismatch(
            "PreNorm adds the normalized tokens to what the wrapped module returns.",
            hint="Return what fn returns: the Transformer adds the residual.",
            look_for="fn() + _ | _ + fn(), _ + _, fn()",
        )
    if not same(y, made):
        raise Mismatch(
            "What PreNorm returns is not what the wrapped module returned.",
            hint="Normalize first, then call fn, and return what it gives.",
            look_for="fn()",
        )


@pytest.mark.component("PreNorm")
@pytest.mark.because("prenorm_keeps_the_shape")
@pytest.mark.weight(0.25)
def test_prenorm_takes_keyword_arguments(student):
    """PreNorm hands keyword arguments on to the wrapped module."""
    prenorm = student.build("PreNorm", DIM, inner=AffineFake())
    x = student.tensor(2, 5, DIM)
    if same(prenorm(x, extra=student.tensor(2, 5, DIM)), prenorm(x, shape=(2, 5, DIM))):
        raise Mismatch(
            "The wrapped module does not receive the keyword argument that PreNorm was called with.",
            hint="forward(self, x, **kwargs), and self.fn(..., **kwargs).",
            look_for="fn()",
            diagnosis="keywords_dropped",
        )


@pytest.mark.component("FeedForward")
@pytest.mark.weight(0.4)
def test_feed_forward_keeps_the_shape(student):
    """FeedForward maps (batch, tokens, dim) to (batch, tokens, dim)."""
    student.build("FeedForward", 22, 31)(student.tensor(2, 5, 22), shape=(2, 5, 22))


@pytest.mark.component("FeedForward")
@pytest.mark.weight(0.4)
def test_feed_forward_takes_each_token_alone(student):
    """FeedForward treats every token by itself: changing one token changes no other."""
    x = student.tensor(2, 5, 22)
    feed_forward = moved(student.build("FeedForward", 22, 31))
    before = feed_forward(x, shape=(2, 5, 22))
    changed = x.clone()
    changed[1, 3] += student.tensor(22)
    differs = (feed_forward(changed, shape=(2, 5, 22)) - before).abs().amax(dim=-1) > 1e-5
    if not differs[1, 3]:
        raise Mismatch("Changing a token does not change FeedForward's output for it.")
    if int(differs.sum()) != 1:
        raise Mismatch(
            "Changing one token changes FeedForward's output for other tokens too.",
            look_for="softmax() | Softmax() | mean() | BatchNorm1d() | randn() | rand() | randn_like()",
        )


@pytest.mark.component("FeedForward")
@pytest.mark.because("feed_forward_keeps_the_shape")
@pytest.mark.weight(0.4)
def test_feed_forward_is_not_linear(student):
    """FeedForward has a nonlinearity, not behind its last layer: it does more than one linear layer can."""
    feed_forward = moved(student.build("FeedForward", DIM, HIDDEN))
    x, z = 3 * student.tensor(1, 40, DIM), 3 * student.tensor(1, 40, DIM)
    zero = feed_forward(0 * x)
    if same(feed_forward(x + z) - zero, feed_forward(x) - zero + feed_forward(z) - zero):
        raise Mismatch(
            "FeedForward is linear: f(x + z) - f(0) is (f(x) - f(0)) + (f(z) - f(0)).",
            hint="An activation such as nn.GELU() stands between the two linear layers.",
            look_for="Sequential()",
        )
    outputs = feed_forward(30 * student.tensor(1, 200, DIM))
    nearly = 0.02 * float(outputs.abs().max())  # GELU and LeakyReLU leave a little below zero
    if any(float((side > -nearly).float().mean()) > 0.9 for side in (outputs, -outputs)):
        raise Mismatch(
            "Nearly all numbers that FeedForward returns have the same sign.",
            hint="No activation after the second linear layer.",
            look_for="GELU() | ReLU() | SiLU() | gelu() | relu() | silu(), Sequential()",
        )


@pytest.mark.component("FeedForward")
@pytest.mark.because("feed_forward_keeps_the_shape", "feed_forward_is_not_linear")
@pytest.mark.weight(0.4)
def test_feed_forward_has_two_layers(student):
    """FeedForward goes from dim to hidden_dim and back: both layers grow with hidden_dim."""
    small, large = (student.build("FeedForward", DIM, hidden) for hidden in (HIDDEN, HIDDEN + 10))
    grown = large.parameter_count - small.parameter_count
    if grown < 2 * 10 * DIM:
        raise Mismatch(
            f"With hidden_dim={HIDDEN + 10} instead of {HIDDEN} it has {grown} more parameters; two layers "
            f"have at least {2 * 10 * DIM} more (dim={DIM}).",
            hint="Linear(dim, hidden_dim), activation, Linear(hidden_dim, dim): hidden_dim as it is given.",
            look_for="hidden_dim, Sequential(), Linear()",
        )


@pytest.mark.component("FeedForward")
@pytest.mark.weight(0.4)
def test_feed_forward_drops_out(student):
    """FeedForward drops values in training, at the rate `dropout`, and none in evaluation."""
    require_dropout(
        lambda rate: moved(student.build("FeedForward", DIM, HIDDEN, dropout=rate)).repeated,
        student.tensor(4, 9, DIM),
    )


@pytest.mark.component("Attention")
@pytest.mark.weight(0.375)
def test_attention_keeps_the_shape(student):
    """Attention maps (batch, tokens, dim) to (batch, tokens, dim), for any number and width of heads."""
    for heads, dim_head, tokens in ((5, 3, 7), (1, 22, 3), (2, 7, 1)):
        attention = student.build("Attention", 22, heads=heads, dim_head=dim_head)
        attention(student.tensor(2, tokens, 22), shape=(2, tokens, 22))


@pytest.mark.component("Attention")
@pytest.mark.weight(0.375)
def test_attention_keeps_images_apart(student):
    """Attention never mixes the images of a batch."""
    x = student.tensor(3, 7, 22)
    attention = moved(student.build("Attention", 22, heads=5, dim_head=3))
    together = attention(x, shape=(3, 7, 22))
    changed = x.clone()
    changed[2] += student.tensor(7, 22)
    apart = attention(changed, shape=(3, 7, 22))
    if (together[:2] - apart[:2]).abs().max() > 1e-5:
        raise Mismatch(
            "The output for one image changes when another image of the batch changes.",
            hint="Look at every reshape and transpose: the batch axis must stay by itself.",
            look_for="softmax(dim=0) | softmax(0) | softmax(_, dim=0) | softmax(_, 0) | Softmax(dim=0)",
        )


@pytest.mark.component("Attention")
@pytest.mark.because("attention_keeps_images_apart")
@pytest.mark.weight(0.375)
def test_attention_looks_at_every_token(student):
    """In Attention every token's output depends on every other token."""
    x = student.tensor(1, 6, 22).repeat(6, 1, 1)
    attention = moved(student.build("Attention", 22, heads=5, dim_head=3))
    before = attention(x, shape=(6, 6, 22))
    changed = x.clone()
    for token in range(6):  # another one in each image
        changed[token, token] += 2 * student.tensor(22)
    differences = (attention(changed, shape=(6, 6, 22)) - before).abs().amax(dim=-1)
    for token, output in (differences < 1e-7).nonzero().tolist():
        raise Mismatch(
            f"Changing token {token} of 6 leaves the output for token {output} as it was.",
            hint="Each query is compared with the keys of all tokens.",
            look_for="is_causal, tril() | triu(), masked_fill() | masked_fill_() | eye()",
        )


@pytest.mark.component("Attention")
@pytest.mark.because("attention_keeps_images_apart", "attention_looks_at_every_token")
@pytest.mark.weight(0.375)
def test_attention_knows_no_order(student):
    """Attention knows no order: reordering tokens reorders their outputs, and changes nothing else."""
    for heads, dim_head in ((HEADS, DIM_HEAD), (2, 7)):
        attention = moved(student.build("Attention", DIM, heads=heads, dim_head=dim_head))
        x = 2 * student.tensor(2, 6, DIM)
        y, turned = (attention(tokens, shape=(2, 6, DIM)) for tokens in (x, x.flip(1)))
        if same(y, y[:, :1].expand_as(y)):
            raise Mismatch(
                "All tokens get the same output.",
                hint="Each token has a query of its own, and its own attention over all keys.",
                look_for="_[:, 0] | _[:, :1] | _[:, :, 0] | _[:, :, :1]",
            )
        if not same(turned.flip(1), y, tolerance=1e-3):
            raise Mismatch(
                "With the tokens in another order, a token gets a different output.",
                hint="Look at how the heads are split off and joined: (batch, tokens, heads * dim_head) "
                "becomes (batch, heads, tokens, dim_head) by a reshape and a transpose, not by one alone.",
            )


def attention_weights(attention, x):
    """How much of each token's values goes into each token's output, (tokens, tokens), for one head.

    What a token by itself gives is known: its weight is 1. Outputs of several are put together from these.

    Args:
        x: One image's tokens, (tokens, dim).

    Returns:
        The weights and how far the outputs are from what they put together, relative to their size.
    """
    weights, rest = put_together(attention, x)
    return weights, max(rest, float((weights.sum(dim=1) - 1).abs().max()))


def put_together(attention, x):
    """The same, with weights of any sum."""
    import torch

    alone = attention(x[:, None], shape=(len(x), 1, x.shape[1]))[:, 0].double()
    together = attention(x[None], shape=(1, *x.shape))[0].double()
    weights = torch.linalg.lstsq(alone.T, together.T).solution.T
    rest = (weights @ alone - together).abs().max() / alone.abs().max().clamp(min=1e-9)
    return weights, float(rest)


def is_weighted_sum(student):
    """Whether outputs are put together from what each token gives by itself, with weights of any sum."""
    attention = one_head(student, 16, biases=0.0)  # a bias is added once, whatever the weights
    return put_together(attention, student.tensor(5, DIM))[1] < 0.02


def one_head(student, dim_head, biases=0.1):
    """Attention with one head, and weights of a size that no initial value decides."""
    return with_other_weights(student, student.build("Attention", DIM, heads=1, dim_head=dim_head), biases)


def with_other_weights(student, attention, biases=0.1):
    """The same Attention with other weights of that size."""
    attention.set_weights(
        {
            parameter.name: (0.1 if len(parameter.shape) > 1 else biases) * student.tensor(*parameter.shape)
            for parameter in attention.parameters
            if parameter.trainable and parameter.shape
        }
    )
    return attention


def heads_in_turn(student, dim_head):
    """Attention with one head, eight times, each time with other weights."""
    attention = one_head(student, dim_head)
    yield attention
    for _ in range(7):
        yield with_other_weights(student, attention)


@pytest.mark.component("Attention")
@pytest.mark.because("attention_keeps_images_apart", "attention_knows_no_order")
@pytest.mark.weight(0.375)
def test_attention_averages_the_values(student):
    """Each output of a head is an average of all tokens' values: its attention over all keys sums to 1."""
    for _ in range(3):
        weights, rest = attention_weights(one_head(student, 16), student.tensor(5, DIM))
        if rest > 0.02 or weights.min() < -0.02:
            hint = "softmax(dim=-1) on the scores (batch, heads, queries, keys): over the keys."
            if is_weighted_sum(student):
                raise Mismatch(
                    "With one head, a token's output is no average of what each token gives by itself: the "
                    "attention of a query over all keys does not sum to 1.",
                    hint=hint,
                    look_for="softmax() | Softmax() | log_softmax() | sigmoid() | relu()",
                )
            raise Mismatch(
                "With one head, a token's output is not an average of what each token gives by itself: the "
                "attention of a query over all keys does not sum to 1, or something else is added.",
                hint=hint,
            )
        if float(weights.std()) < 1e-3:
            raise Mismatch(
                "Every token gets the same share of every other one, whatever the tokens are.",
                hint="The scores of queries and keys decide how much of each value is taken.",
            )


def spread_of_scores(attentions, student):
    """How much the logarithms of attention weights differ within a row, on average over several layers."""
    spreads = []
    for attention in attentions:
        weights, _ = attention_weights(attention, student.tensor(5, DIM))
        spreads.append(weights.clamp(min=1e-6).log().var(dim=1).mean().sqrt())
    return float(sum(spreads) / len(spreads))


def scores_are_mutual(student):
    """Whether each two tokens have one score for each other; whatever is added to all scores of a query."""
    logarithms = attention_weights(one_head(student, 8), student.tensor(5, DIM))[0].clamp(min=1e-6).log()
    turned = logarithms - logarithms.T
    of_queries = turned.mean(dim=1)  # what the softmax took away from each query's scores
    rest = turned - (of_queries[:, None] - of_queries[None])
    return float(rest.abs().max()) < 0.01 * float(logarithms.std())


@pytest.mark.component("Attention")
@pytest.mark.because("attention_averages_the_values")
@pytest.mark.weight(0.375)
def test_attention_is_as_sharp_for_wide_heads(student):
    """The scores are scaled by sqrt(dim_head): wide heads do not attend more sharply than narrow ones."""
    narrow, wide = (spread_of_scores(heads_in_turn(student, dim_head), student) for dim_head in (8, 128))
    ratio = wide / max(narrow, 1e-9)
    if not 0.55 < ratio < 1.8:
        # whoever scales the initial weights instead has written it another way
        made = [
            spread_of_scores(
                [student.build("Attention", DIM, heads=1, dim_head=dim_head) for _ in range(8)], student
            )
            for dim_head in (8, 128)
        ]
        if 0.7 < made[1] / max(made[0], 1e-9) < 1.4:
            return
        if scores_are_mutual(student):
            raise Mismatch(
                "A token's score for another is the other's score for it: queries and keys are the same.",
                hint="Queries and keys have projections of their own: scores = q @ k.transpose(-2, -1).",
                diagnosis="keys_are_queries",
                look_for="_ @ q.transpose() | matmul(_, q.transpose()), _ @ _.transpose() | _ @ _.mT",
            )
        how = "more" if ratio > 1 else "less"
        raise Mismatch(
            f"With dim_head=128 the scores differ much {how} than with dim_head=8. "
            "Divided by sqrt(dim_head) they differ about as much.",
            hint="scores = q @ k.transpose(-2, -1) / sqrt(dim_head), before the softmax."
            if ratio > 1
            else "Divide once, by sqrt(dim_head); F.scaled_dot_product_attention does that by itself.",
            look_for="_ ** -0.5 | _ ** 0.5 | sqrt() | rsqrt(), scale, _ @ _.transpose() | _ @ _.mT",
        )


@pytest.mark.component("Attention")
@pytest.mark.weight(0.375)
def test_attention_has_four_projections(student):
    """Attention projects to queries, keys and values of heads * dim_head features, and back to dim."""
    for heads, dim_head in ((HEADS, DIM_HEAD), (2, 7), (1, 30), (2, DIM // 2)):
        inner = heads * dim_head
        attention = student.build("Attention", DIM, heads=heads, dim_head=dim_head)
        least, most = 4 * inner * DIM, 4 * inner * DIM + 3 * inner + 9 * DIM
        if not least <= attention.parameter_count <= most:
            raise Mismatch(
                f"With dim={DIM}, heads={heads} and dim_head={dim_head} Attention has "
                f"{attention.parameter_count} parameters; four projections between {DIM} and {inner} "
                f"features have {least}, and perhaps biases.",
                hint="dim to heads * dim_head for q, k and v, and heads * dim_head back to dim.",
                look_for="_ // heads | _ // num_heads | _ // self.heads, inner_dim | inner",
            )


@pytest.mark.component("Attention")
@pytest.mark.because("attention_keeps_the_shape")
@pytest.mark.weight(0.375)
def test_attention_drops_out(student):
    """Attention drops values in training, at the rate `dropout`, and none in evaluation."""
    require_dropout(
        lambda rate: (
            moved(student.build("Attention", DIM, heads=HEADS, dim_head=DIM_HEAD, dropout=rate)).repeated
        ),
        student.tensor(4, 9, DIM),
    )


@pytest.mark.component("Transformer")
@pytest.mark.weight(0.2)
def test_transformer_keeps_the_shape(student):
    """Transformer maps (batch, tokens, dim) to (batch, tokens, dim)."""
    fakes = {"Attention": AffineFake(roll=1), "FeedForward": AffineFake(), "PreNorm": AffineFake(wraps=True)}
    transformer = student.build("Transformer", 22, 2, 5, 3, 31, replace=fakes)
    transformer(student.tensor(2, 7, 22), shape=(2, 7, 22))


def transformer_around(student, attention=None, feed_forward=None, depth=DEPTH, dropout=0.0):
    """The Transformer, with fakes in the places of its parts."""
    parts = {
        "Attention": attention or AffineFake(roll=1, parameters=7),
        "FeedForward": feed_forward or AffineFake(parameters=11),
        "PreNorm": AffineFake(scale=(0.7,), shift=(0.2,), wraps=True),
    }
    return student.build("Transformer", DIM, depth, HEADS, 6, HIDDEN, dropout=dropout, replace=parts)


def uses_its_parts(transformer):
    """Whether it constructs the classes Attention and FeedForward; what stands inline is seen when graded."""
    return bool(transformer.constructions("Attention") and transformer.constructions("FeedForward"))


@pytest.mark.component("Transformer")
@pytest.mark.because("transformer_runs_its_blocks_in_order")
@pytest.mark.weight(0.2)
def test_transformer_adds_to_its_input(student):
    """Each part of a block adds to its input: where the parts give 0, the tokens come out as they went in."""
    x = 2 * student.tensor(2, 7, DIM) + 1
    for part, attention, feed_forward in (("", 0.0, 0.0), ("Attention", 0.5, 0.0), ("FeedForward", 0.0, 0.5)):
        parts = [AffineFake(scale=(0.0,), shift=(shift,)) for shift in (attention, feed_forward)]
        transformer = transformer_around(student, *parts)
        y = transformer(x, shape=(2, 7, DIM))
        if not uses_its_parts(transformer):
            return
        expected = x + DEPTH * (attention + feed_forward)
        normed = expected - expected.mean(dim=-1, keepdim=True)
        normed = normed / (normed.pow(2).mean(dim=-1, keepdim=True) + 1e-5).sqrt()
        if same(y, expected) or same(y, normed):  # a last normalization is usual
            continue
        second = 0.7 * (x + attention) + 0.2  # by the PreNorm around the first FeedForward
        look_for = "loop_end" if same(transformer.inputs_of("FeedForward")[0], second) else "loop"
        if part:
            raise Mismatch(
                f"Where {part} gives {attention + feed_forward} for every number and the other part 0, each "
                f"of {DEPTH} blocks should add just that to its input; it does not.",
                hint="x = x + part(x), for both parts of every block.",
                look_for=look_for,
            )
        raise Mismatch(
            "Where both parts give 0, the Transformer does not return its input as it was.",
            hint="x = x + part(x): what went into the PreNorm is added, not the normalized tokens.",
            look_for=look_for,
        )


@pytest.mark.component("Transformer")
@pytest.mark.weight(0.2)
def test_transformer_runs_its_blocks_in_order(student):
    """Transformer runs depth blocks, each its own Attention and then its own FeedForward, all registered."""
    transformer = transformer_around(student)
    transformer(student.tensor(2, 7, DIM), shape=(2, 7, DIM))
    if not uses_its_parts(transformer):
        return
    called = [(call.component, call.instance) for call, _ in transformer.calls if call.component != "PreNorm"]
    order = [name for name, _ in called]
    blocks = len(order) // 2
    if blocks not in (0, DEPTH) and order == ["Attention", "FeedForward"] * blocks:
        raise Mismatch(
            f"With depth={DEPTH} it runs {blocks} blocks.",
            hint="for _ in range(depth): an Attention and a FeedForward for each block.",
            look_for="range(), loop",
        )
    if order != ["Attention", "FeedForward"] * DEPTH:
        raise Mismatch(
            f"With depth={DEPTH} it calls, in this order: {', '.join(order) or 'nothing'}.",
            hint="In every block Attention first, then FeedForward, once each.",
            look_for="loop",
        )
    if len(set(called)) != len(called):
        raise Mismatch(
            "The same Attention or FeedForward is used in several blocks.",
            hint="Construct the parts inside the loop, so that each block has weights of its own.",
            look_for="_ * depth | repeat(), Attention() | FeedForward()",
            diagnosis="shared_layers",
        )
    x, received = student.tensor(2, 7, DIM), []
    for scale in (0.0, 1.0):  # an Attention that adds nothing, and one that adds other tokens
        transformer = transformer_around(student, AffineFake(scale=(scale,), roll=1), depth=1)
        transformer(x, shape=(2, 7, DIM))
        received.append(transformer.inputs_of("FeedForward")[0])
    if same(*received):
        raise Mismatch(
            "What FeedForward receives does not depend on what Attention gives.",
            hint="x = x + attention(x), and then x = x + feed_forward(x): one after the other.",
            look_for="loop_end",
        )
    counts = [transformer_around(student, depth=depth).parameter_count for depth in (1, 2)]
    if counts[1] - counts[0] < 7 + 11:
        raise Mismatch(
            "A second block adds no parameters of its parts: the optimizer will not see them.",
            hint="Modules in a plain Python list are not registered; those in an nn.ModuleList are.",
            look_for="[], Attention() | FeedForward()",
        )


@pytest.mark.component("Transformer")
@pytest.mark.because("transformer_runs_its_blocks_in_order")
@pytest.mark.weight(0.2)
def test_transformer_normalizes_before_each_part(student):
    """Each part of a block receives normalized tokens (pre-norm), not the tokens as they came."""
    transformer = transformer_around(student, AffineFake(scale=(0.0,)), AffineFake(scale=(0.0,)))
    x = 2 * student.tensor(2, 7, DIM) + 1
    transformer(x, shape=(2, 7, DIM))
    if not uses_its_parts(transformer):
        return
    for part in ("Attention", "FeedForward"):
        if any(same(received, x) for received in transformer.inputs_of(part)):
            raise Mismatch(
                f"{part} receives the tokens as they came, not normalized.",
                hint=f"Wrap it: PreNorm(dim, {part}(...)), so that its input is normalized.",
                look_for=f"{part}()",
            )


@pytest.mark.component("Transformer")
@pytest.mark.weight(0.2)
def test_transformer_gives_its_parts_their_sizes(student):
    """Transformer gives Attention its heads and dim_head, FeedForward its mlp_dim, and both the dropout."""
    transformer = transformer_around(student, dropout=0.25)
    expected = {
        "Attention": {"dim": DIM, "heads": HEADS, "dim_head": 6, "dropout": 0.25},
        "FeedForward": {"dim": DIM, "hidden_dim": HIDDEN, "dropout": 0.25},
    }
    x = student.tensor(2, 7, DIM)
    drops_itself = not same(transformer(x, train=True), transformer(x, train=True))
    for part, sizes in expected.items():
        for given in transformer.constructions(part):
            require_sizes("Transformer", part, sizes, given, but=["dropout"] if drops_itself else [])


def require_sizes(owner, part, sizes, given, but=()):
    """Check the arguments that a part was constructed with.

    Args:
        given: By the names of the stub; what was left out has the stub's default.
        but: Names that may differ.
    """
    defaults = {"heads": 4, "dim_head": 64, "dropout": 0.0}
    for name, size in sizes.items():
        got = given.get(name, defaults.get(name))
        if name not in but and got is not None and got != size:
            raise Mismatch(
                f"{owner} was given {name}={size}, but constructs {part} with {name}={got}.",
                hint=f"Hand it on by its name: {name}={name}.",
                look_for=f"{part}()",
            )


@pytest.mark.component("ViT")
@pytest.mark.weight(0.125)
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"image_size": 32, "patch_size": 8, "channels": 3, "num_classes": 10, "depth": 1},
        {"depth": 1, "dim": 22, "heads": 5, "dim_head": 3, "mlp_dim": 31, "pool": "mean"},
    ],
)
def test_vit_returns_logits(student, changes):
    """ViT maps images (batch, channels, height, width) to one score per class, (batch, classes)."""
    options = {**DEFAULTS, "depth": 2, **changes}
    fake = {"Transformer": AffineFake()}
    images = student.tensor(3, options.get("channels", 1), options["image_size"], options["image_size"])
    student.build("ViT", **options, replace=fake)(images, shape=(3, options["num_classes"]))


def vit_around(student, transformer=None, **changes):
    """The ViT around a fake of its Transformer, with weights that are not zero by chance.

    Returns:
        None where it uses no Transformer: what stands inline is looked at when it is graded.
    """
    options = {**OPTIONS, **changes}
    model = student.build("ViT", **options, replace={"Transformer": transformer or AffineFake()})
    if not model.constructions("Transformer"):
        return None
    model.randomize(0.3)
    return model


def tokens(model, images, **how):
    """What the Transformer receives for images, (batch, tokens, dim)."""
    [received] = tokens_each_time(model, images, times=1, **how)
    return received


def tokens_each_time(model, images, **how):
    """What the Transformer receives in each of several calls, (batch, tokens, dim)."""
    outputs = model.repeated(images, shape=(len(images), OPTIONS["num_classes"]), **how)
    return [tokens_in(model.inputs_of("Transformer")[0], images) for _ in outputs]


def tokens_in(received, images):
    """What the Transformer received, if it has the shape (batch, tokens, dim)."""
    if received.ndim != 3 or received.shape[0] != len(images) or received.shape[2] != DIM:
        raise Mismatch(
            f"The Transformer receives a tensor of shape {tuple(received.shape)}; it should be (batch, "
            f"tokens, dim), here ({len(images)}, 10, {DIM})."
        )
    return received


def images(student, count=2):
    """Images of 2 channels and 15 x 15 pixels."""
    return student.tensor(count, 2, 15, 15)


@pytest.mark.component("ViT")
@pytest.mark.because("vit_returns_logits")
@pytest.mark.weight(0.125)
def test_vit_sees_the_whole_image(student):
    """Every pixel of every channel reaches the tokens, in one patch; images do not influence each other."""
    from grader.kit.transformers import fields

    model = vit_around(student)
    if model is None:
        return
    if not same(*tokens_each_time(model, images(student), times=2)):
        raise Mismatch(
            "In evaluation the same image gives other tokens each time.",
            hint="Patches keep their order, and nothing in forward is drawn at random; F.dropout needs "
            "training=self.training.",
            look_for=f"{RANDOM}, F.dropout()",
            cause=Cause.RANDOM,
        )
    found = fields(lambda batch: tokens(model, batch), images(student, 1)[0])
    if not found.images_apart:
        raise Mismatch(
            "The tokens of one image change when another image of the batch changes.",
            hint="Look at every reshape: the batch axis must stay by itself.",
        )
    unseen = int((~found.seen.any(dim=0)).sum())
    if unseen:
        raise Mismatch(
            f"{unseen} of the {found.seen[0].numel()} numbers of an image (2 channels of 15 x 15 pixels) "
            "reach no token.",
            hint="A patch has channels * patch_size**2 numbers: 15 x 15 pixels make 9 patches of 5 x 5.",
            look_for="interpolate() | resize(), Rearrange() | rearrange() | unfold() | Unfold()",
        )
    if not found.are_patches(5) and not (found.overlap() and found.are_windows()):
        raise Mismatch(
            "The tokens do not see one square patch of the image each.",
            hint="Rows and columns are cut alike: axes (h p) and (w q) become one token axis (h w), and the "
            "channels go with the pixels of their patch.",
            look_for="Rearrange() | rearrange() | unfold() | Unfold()",
        )


@pytest.mark.component("ViT")
@pytest.mark.weight(0.125)
def test_vit_has_a_class_token(student):
    """A class token, which no image changes, stands in front of the patches."""
    model = vit_around(student)
    if model is None:
        return
    found = tokens(model, images(student, 3))
    fixed = (found - found[:1]).abs().amax(dim=(0, 2)) < 1e-6
    if fixed[0] and len(fixed) > 10 and fixed[10:].all():
        raise Mismatch(
            f"Behind the class token and 9 patches stand {len(fixed) - 10} tokens that no image changes.",
            hint="Positions are added, tokens + positions: torch.cat makes further tokens of them.",
            look_for="cat() | concat()",
        )
    if not fixed[0] or int(fixed.sum()) != 1:
        places = [place for place, same_for_all in enumerate(fixed) if same_for_all]
        raise Mismatch(
            f"Of {len(fixed)} tokens those at {places or 'no place'} are the same for all images; only the "
            "first one should be: the class token.",
            hint="torch.cat([class_tokens, patches], dim=1): an nn.Parameter, repeated for the batch.",
            look_for="cat() | concat()" if places else "",
        )


@pytest.mark.component("ViT")
@pytest.mark.weight(0.125)
def test_vit_tells_places_apart(student):
    """The same patch at two places makes two different tokens, because each place has a position."""
    model = vit_around(student)
    if model is None:
        return
    alike = images(student, 1)[:, :, :5, :5].repeat(1, 1, 3, 3)
    found = tokens(model, alike)[0, -9:]
    distances = (found[:, None] - found[None]).abs().amax(dim=-1)
    if (distances + distances.new_ones(len(found)).diag() < 1e-5).any():
        shapes = [parameter.shape for parameter in model.parameters if parameter.trainable]
        has_them = any(shape[-1:] == (DIM,) and {9, 10} & set(shape[:-1]) for shape in map(tuple, shapes))
        raise Mismatch(
            "An image of nine equal patches makes equal tokens: the model cannot tell where a patch was.",
            hint="Its positions are not added: tokens + positions, behind the class token's torch.cat."
            if has_them
            else "Add an nn.Parameter with a row for each token, (1, patches + 1, dim).",
            look_for="cat() | concat()" if has_them else "",
        )


@pytest.mark.component("ViT")
@pytest.mark.because("vit_has_a_class_token")
@pytest.mark.weight(0.125)
def test_vit_pools_as_it_is_told(student):
    """pool='cls' classifies the class token, pool='mean' the mean of all tokens."""
    # no token sees another where the Transformer hands on its input, so that the class token sees no image
    for pool in ("cls", "mean"):
        model = vit_around(student, pool=pool)
        if model is None:
            return
        scores = model(3 * images(student, 4), shape=(4, 7))
        moves = bool((scores - scores[:1]).abs().max() > 1e-5)
        if moves != (pool == "mean"):
            read = "patches" if moves else "the class token alone"
            raise Mismatch(
                f"With pool={pool!r} the scores depend on {read}.",
                hint="encoded[:, 0] for 'cls', encoded.mean(dim=1) for 'mean'.",
                look_for="_[:, 0] | _[:, -1], mean()",
            )


@pytest.mark.component("ViT")
@pytest.mark.weight(0.125)
def test_vit_returns_no_probabilities(student):
    """ViT returns scores before any softmax: they are negative and positive, and add up to nothing fixed."""
    import torch

    model = student.build("ViT", **OPTIONS, pool="mean", replace={"Transformer": AffineFake()})
    model.randomize(0.3)
    trained = {parameter.name for parameter in model.parameters}
    weights = {name: value for name, value in model.weights().items() if name in trained}
    scores = []
    for factor in (1, -1, 4, -4):  # scores of one sign by chance are so only once
        model.set_weights({name: factor * value for name, value in weights.items()})
        scores.append(model(3 * images(student, 6), shape=(6, 7)))
    found = torch.stack(scores)
    if (found >= 0).all():
        sums = same(found.sum(dim=2), torch.ones(4, 6))
        raise Mismatch(
            f"The scores are never negative{', and those of an image add up to 1' if sums else ''}.",
            hint="Nothing after the last linear layer: the loss function applies the softmax.",
            look_for="softmax() | Softmax() | sigmoid() | Sigmoid() | relu() | ReLU()",
        )


@pytest.mark.component("ViT")
@pytest.mark.weight(0.125)
def test_vit_gives_the_transformer_its_sizes(student):
    """ViT uses one Transformer, with the dim, depth, heads, dim_head, mlp_dim and dropout that it gets."""
    sizes = {name: OPTIONS[name] for name in ("dim", "depth", "heads", "dim_head", "mlp_dim")}
    model = vit_around(student, dropout=0.25)
    if model is None:
        return
    model(images(student), shape=(2, 7))
    if len(model.inputs_of("Transformer")) > 1:
        raise Mismatch(
            "ViT calls the Transformer several times.",
            hint="Once: it has all the blocks in it.",
            look_for="transformer() | encoder()",
        )
    require_sizes("ViT", "Transformer", {**sizes, "dropout": 0.25}, model.constructions("Transformer")[0])


@pytest.mark.component("ViT")
@pytest.mark.weight(0.125)
def test_vit_drops_out(student):
    """ViT drops values of the tokens in training, at the rate `emb_dropout`, and none in evaluation."""
    models = {rate: vit_around(student, emb_dropout=rate) for rate in (0.0, 0.5)}
    if models[0.5] is None:
        return
    require_dropout(
        lambda rate: lambda batch, **how: tokens_each_time(models[rate], batch, **how),
        images(student),
        rate="emb_dropout",
    )


@pytest.mark.component("train_epoch")
@pytest.mark.weight(0.2)
def test_train_epoch_runs(student, class_names):
    """train_epoch goes through the loader once and takes an optimizer step for every batch."""
    from grader.kit import trainable_data

    data = trainable_data(class_names, (8,) * 6, features=5, seed=student.next_seed())
    run = student.run("train_epoch", data)
    if len(run.forwards) != 6:
        raise Mismatch(f"For a loader of 6 batches the model was called {len(run.forwards)} times.")
    if run.steps != 6:
        raise Mismatch(
            f"For a loader of 6 batches the optimizer took {run.steps} steps.",
            hint="Call optimizer.step() once for every batch, after loss.backward().",
            look_for="step(), backward(), loop",
            diagnosis="no_step" if run.steps == 0 else None,
        )


def epoch(student, class_names):
    """(data, run) of an epoch over a linear model, whose gradients are known: one for several checks."""
    from grader.kit import trainable_data

    def make():
        data = trainable_data(class_names, (8, 8, 8, 8, 5), features=5, seed=student.next_seed(), scale=2.0)
        return data, student.run("train_epoch", data)

    return student.shared("an epoch", make)


def gradients_of_batches(data, run):
    """What reached the model's scores in each batch, and the gradient of the weights that comes of it."""
    start = 0
    for size in data.batch_sizes:
        rows = slice(start, start + size)
        reached = run.arrays["logit_gradients"][rows]
        yield reached, data.arrays["features"][rows].T @ reached
        start += size


@pytest.mark.component("train_epoch")
@pytest.mark.weight(0.2)
def test_train_epoch_trains_in_training_mode(student, class_names):
    """train_epoch puts the model in training mode, whatever mode it comes in."""
    _, run = epoch(student, class_names)
    if not all(forward.training for forward in run.forwards):
        raise Mismatch(
            "The model was passed in evaluation mode, and was trained in it: dropout is off.",
            hint="model.train() before the loop over the batches.",
            look_for="eval() | train(False), for",
            diagnosis="missing_train_mode",
        )


@pytest.mark.component("train_epoch")
@pytest.mark.because("train_epoch_runs")
@pytest.mark.weight(0.2)
def test_train_epoch_clears_the_gradients(student, class_names):
    """Every step follows the gradient of its own batch alone: gradients are cleared between the batches."""
    import numpy as np

    data, run = epoch(student, class_names)
    own = [gradient for _, gradient in gradients_of_batches(data, run)]
    if run.steps != len(own):
        raise Mismatch(f"For a loader of {len(own)} batches the optimizer took {run.steps} steps.")
    if not all(np.isfinite(gradient).all() for gradient in own):
        raise Mismatch("No gradient reaches the model's scores.", hint="loss.backward() for every batch.")
    for number, (used, expected) in enumerate(zip(run.arrays["step_gradients"], own, strict=True), start=1):
        # clipping makes a gradient shorter, and leaves its direction
        across = (used * expected).sum() / max(np.linalg.norm(used) * np.linalg.norm(expected), 1e-12)
        longer = np.linalg.norm(used) / max(np.linalg.norm(expected), 1e-12)
        if across < 0.999 or longer > 1.001:
            if np.abs(used).max() == 0:
                raise Mismatch(
                    f"The step after batch {number} saw no gradient: it was cleared, or not computed yet.",
                    hint="For every batch: optimizer.zero_grad(), loss.backward(), optimizer.step().",
                    look_for="zero_grad(), step()",
                )
            raise Mismatch(
                f"The step after batch {number} does not follow the gradient of that batch alone.",
                hint="For every batch: optimizer.zero_grad(), loss.backward(), optimizer.step().",
                look_for="retain_graph, zero_grad(), backward(), loop",
            )


@pytest.mark.component("train_epoch")
@pytest.mark.because("train_epoch_runs")
@pytest.mark.weight(0.2)
def test_train_epoch_learns_the_labels(student, class_names):
    """The loss raises the score of each image's own label, most of all where the model is wrong."""
    import numpy as np

    for again in (True, True, False):  # what mixes images by chance teaches other labels as well
        data, run = epoch(student, class_names) if not again else fresh_epoch(student, class_names)
        first = next(gradients_of_batches(data, run))[0]
        rows = np.arange(len(first))
        scores = data.arrays["features"][: len(first)] @ data.arrays["weights"]
        powers = np.exp(scores - scores.max(axis=1, keepdims=True))
        likely = (powers / powers.sum(axis=1, keepdims=True))[rows, data.labels[: len(first)]]
        pulls = -first[rows, data.labels[: len(first)]]
        everywhere = -np.concatenate([reached for reached, _ in gradients_of_batches(data, run)])
        taught = everywhere[np.arange(len(everywhere)), data.labels].sum()
        if not np.isfinite(taught):
            raise Mismatch("No gradient reaches the model's scores.", hint="loss.backward() for every batch.")
        hard, middling = pulls[likely < 0.1], pulls[(likely > 0.2) & (likely < 0.7)]
        soft = len(hard) and len(middling) and hard.mean() < 0.7 * middling.mean()
        if taught > 0 and not soft:
            return
    if taught <= 0:
        raise Mismatch(
            "The gradient does not raise the scores of the images' own labels.",
            hint="loss = F.cross_entropy(model(images), labels), and a step that makes it smaller.",
            look_for=LOSSES,
        )
    raise Mismatch(
        "The gradient is smaller for images that the model gets wrong than for those it nearly gets right.",
        hint="F.cross_entropy takes the scores as they are: it applies the softmax itself.",
        look_for=f"softmax() | log_softmax() | Softmax(), {LOSSES}",
    )


def fresh_epoch(student, class_names):
    """Another epoch, on other data."""
    from grader.kit import trainable_data

    data = trainable_data(class_names, (40, 40, 9), features=5, seed=student.next_seed(), scale=2.0)
    return data, student.run("train_epoch", data)


def reports(run):
    """Whether a run of train_epoch appends, returns or prints a number."""
    return bool(run.history or run.returned or any(letter.isdigit() for letter in run.printed))


@pytest.mark.component("train_epoch")
@pytest.mark.because("train_epoch_runs")
@pytest.mark.weight(0.2)
def test_train_epoch_keeps_floats(student, class_names):
    """train_epoch reports the loss, and what it appends to loss_history are numbers."""
    from grader.kit import trainable_data
    from grader.kit.reported import places

    data, run = epoch(student, class_names)
    if run.history_problem:
        raise Mismatch(
            f"The loss_history is not plain: {run.history_problem}.",
            hint="loss_history.append(loss.item()).",
            look_for="loss_history.append()",
        )
    if not reports(run):  # perhaps it begins with the hundredth batch, or the two hundredth
        long = trainable_data(class_names, (2,) * 210, features=5, seed=student.next_seed())
        run = student.run("train_epoch", long)
    if not reports(run):
        raise Mismatch(
            "train_epoch reports no loss: it neither appends, prints nor returns a number.",
            hint="For the first batch and every 100th after it: loss_history.append(loss.item()).",
        )
    if run.history or run.returned or len(run.forwards) != len(data.batch_sizes):
        return
    others = trainable_data(class_names, data.batch_sizes, features=5, seed=student.next_seed(), scale=2.0)
    printed = places([run, student.run("train_epoch", others)])
    if printed and all(place.is_constant for place in printed):
        raise Mismatch(
            "train_epoch prints numbers, and the same ones for other images: none of them is the loss.",
            hint="For the first batch and every 100th after it: loss_history.append(loss.item()).",
        )


@pytest.mark.component("evaluate")
@pytest.mark.weight(0.2)
def test_evaluate_runs(student, class_names):
    """evaluate goes through the loader once and reports numbers, different ones for another data set."""
    from grader.kit import evaluations
    from grader.kit.reported import places

    found = evaluations(student, "evaluate", class_names)
    for data, run in found:
        count, seen = sum(data.batch_sizes), sum(forward.size for forward in run.forwards)
        if seen != count:
            raise Mismatch(f"Of {count} images in the loader, the model was shown {seen}.")
        if not run.history and not run.returned and not any(letter.isdigit() for letter in run.printed):
            raise Mismatch("evaluate reports nothing: it neither prints, appends nor returns a number.")
    reported = places([run for _, run in found])
    if reported and all(place.is_constant for place in reported):
        raise Mismatch(
            "evaluate reports the same numbers for data sets on which the model does better and worse.",
            hint="Compute them from the model's scores and the labels.",
            diagnosis="numbers_not_computed",
        )


NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")


def known_evaluations(student, class_names):
    """evaluate on a model that is right, one that is wrong, and one that is wrong in the last batch alone.

    Returns:
        The runs, and for each image's share of the whole: how many are right of how many.
    """
    import numpy as np

    from grader.kit import RiggedData, classified_data

    def make():
        runs = []
        for right in (127, 0, 120):
            data = classified_data(class_names, (40, 40, 40, 7), accuracy=1.0, seed=student.next_seed())
            said = (data.labels + (np.arange(127) >= right)) % len(class_names)
            table = np.zeros((127, len(class_names)), dtype=np.float32)
            table[np.arange(127), said] = SURE
            arrays = {**data.arrays, "table": table}
            known = RiggedData(data.batch_sizes, class_names, arrays)
            runs.append(student.run("evaluate", known, initial_mode="train" if right else "eval"))
        return runs

    return student.shared("known evaluations", make)


SURE = 12.0  # the score of the class that the model says; the others' are 0


def columns(runs):
    """What stands in the same place of every run's report: tuples of numbers, one for each run."""
    for rows in (
        [run.returned for run in runs],
        [run.history for run in runs],
        [[float(number) for number in NUMBER.findall(run.printed)] for run in runs],
    ):
        fewest = min(map(len, rows))
        yield from zip(*(row[:fewest] for row in rows), strict=True)
        yield from zip(*(row[len(row) - fewest :] for row in rows), strict=True)


@pytest.mark.component("evaluate")
@pytest.mark.because("evaluate_runs")
@pytest.mark.weight(0.2)
def test_evaluate_tells_a_good_loss_from_a_bad_one(student, class_names):
    """evaluate reports the average loss per image: near 0 for a model that is sure and right."""
    right, wrong, mixed = SURE * 0.15, (0.8 * SURE, 1.05 * SURE), (0.03 * SURE, 0.45 * SURE)
    for values in columns(known_evaluations(student, class_names)):
        if 0 <= values[0] < right and wrong[0] < values[1] < wrong[1] and mixed[0] < values[2] < mixed[1]:
            return
    if any(
        values[0] < -6 and abs(values[1]) < 1 for values in columns(known_evaluations(student, class_names))
    ):
        model = student.build("ViT", **{**OPTIONS, "depth": 1}, replace={"Transformer": AffineFake()})
        sums = model(images(student), shape=(2, 7)).exp().sum(dim=1)
        if same(sums, sums.new_ones(2)):  # its scores are logarithms: their negative is the loss
            return
    twice = math.log(math.e + len(class_names) - 1)  # of one probability of 1 and others of 0, as scores
    for values in columns(known_evaluations(student, class_names)):
        if abs(values[0] - (twice - 1)) < 0.05 and abs(values[1] - twice) < 0.05:
            raise Mismatch(
                f"For a model that is sure and right, the average loss is {values[0]:.2f} instead of 0: it "
                "is computed from probabilities, not from scores.",
                hint="F.cross_entropy takes the scores as they are: it applies the softmax itself.",
                look_for="softmax() | Softmax()",
            )
    raise Mismatch(
        "For a model that is sure and right about all images, the average loss is near 0; for one that is "
        f"sure and wrong, it is about {SURE:.0f}. None of the numbers that evaluate reports is like that.",
        hint="Sum F.cross_entropy(scores, labels, reduction='sum') over all batches, and divide once.",
    )


@pytest.mark.component("evaluate")
@pytest.mark.because("evaluate_runs")
@pytest.mark.weight(0.2)
def test_evaluate_counts_what_is_right(student, class_names):
    """evaluate reports the accuracy over all images: all, none and 120 of 127 in three cases."""
    for values in columns(known_evaluations(student, class_names)):
        for unit in (127, 100, 1):
            near = 0.051 if unit == 1 else 0.6 if unit == 100 else 1e-6  # rounded; "acc-0.9" is not a minus
            said = zip(values, (127, 0, 120), strict=True)
            if all(abs(abs(got) - unit * hits / 127) < near for got, hits in said):
                return
    raise Mismatch(
        "For models that are right about all, none and 120 of 127 images (the last batch has 7), evaluate "
        "reports no number that says so.",
        hint="(scores.argmax(dim=1) == labels).sum(), over all batches, divided by the number of images.",
    )


@pytest.mark.component("evaluate")
@pytest.mark.weight(0.2)
def test_evaluate_only_looks(student, class_names):
    """evaluate puts the model in evaluation mode and computes no gradients, which are on again afterwards."""
    runs = known_evaluations(student, class_names)
    forwards = [forward for run in runs for forward in run.forwards]
    if any(forward.training for forward in forwards):
        raise Mismatch(
            "The model was passed in training mode, and was measured in it: dropout is on.",
            hint="model.eval() before the loop over the batches.",
            look_for="train(), for",
            diagnosis="missing_eval_mode",
        )
    if any(forward.gradients for forward in forwards):
        raise Mismatch(
            "Gradients are computed while the model is measured.",
            hint="with torch.no_grad(): around the loop over the batches.",
            look_for="for",
            diagnosis="gradients_in_evaluation",
        )
    if not all(run.gradients_after for run in runs):
        raise Mismatch(
            "After evaluate gradients are off for the whole program: nothing can be trained any more.",
            hint="with torch.no_grad(): switches them on again by itself.",
            look_for="set_grad_enabled() | __enter__()",
            diagnosis="gradients_left_off",
        )


@pytest.mark.component("evaluate")
@pytest.mark.because("evaluate_runs")
@pytest.mark.weight(0.2)
def test_evaluate_appends_a_number(student, class_names):
    """evaluate appends a number to loss_history, a different one for another model."""
    runs = known_evaluations(student, class_names)
    for run in runs:
        if run.history_problem:
            raise Mismatch(
                f"The loss_history is not plain: {run.history_problem}.",
                hint="loss_history.append(loss.item()).",
                look_for="loss_history.append()",
            )
        if not run.history and not run.returned:
            raise Mismatch(
                "evaluate appends nothing to loss_history.",
                hint="loss_history.append(average_loss), once, at its end.",
                diagnosis="loss_not_appended",
            )
    if len({(run.history, run.returned) for run in runs}) == 1:
        raise Mismatch(
            "What evaluate appends is the same for a model that is right and one that is wrong.",
            look_for="loss_history.append()",
        )


@pytest.mark.component("plot_confusion_matrix")
@pytest.mark.weight(0.25)
def test_confusion_matrix_is_drawn(student, class_names):
    """plot_confusion_matrix draws a figure."""
    from grader.kit import drawn

    _, run = drawn(student, "plot_confusion_matrix", class_names)
    if not run.figures:
        raise Mismatch("No figure was drawn.", hint="Draw with matplotlib, seaborn or scikit-learn.")


def margins_fit(heat, rows, columns):
    """Whether a map's rows and columns add up to so many images, as counts or as shares."""
    import numpy as np

    values, n = np.asarray(heat.values, dtype=float), rows.sum()
    if heat.is_named:
        rows, columns = rows[list(heat.row_classes)], columns[list(heat.column_classes)]
    for whole in (n, 1.0, 100.0):
        near = 0.4 if whole == n else 0.006 * len(rows) * whole
        sums = values.sum(axis=1), values.sum(axis=0)
        if np.allclose(sums[0], rows * whole / n, atol=near) and np.allclose(
            sums[1], columns * whole / n, atol=near
        ):
            return True
    return False


def is_share(heat):
    """Whether a map shows shares of each row or of each column: their sums tell nothing of the counts."""
    import numpy as np

    values = np.asarray(heat.values, dtype=float)
    return any(
        np.allclose(values.sum(axis=axis), whole, atol=0.006 * len(values) * whole)
        for axis in (0, 1)
        for whole in (1, 100)
    )


@pytest.mark.component("plot_confusion_matrix")
@pytest.mark.because("confusion_matrix_is_drawn", "confusion_matrix_asks_the_model")
@pytest.mark.weight(0.25)
def test_confusion_matrix_counts_every_image(student, class_names):
    """A row of the matrix has all images of a true class, a column all that were taken for a class."""
    import numpy as np

    from grader.kit import PREDICTED, TRUE, drawn, heat_maps

    data, run = drawn(student, "plot_confusion_matrix", class_names)
    classes = len(class_names)
    found = [heat for heat in heat_maps(run, class_names) if len(heat.values) == classes]
    if not found:
        raise Mismatch(
            f"There is no heat map of {classes} x {classes} cells.",
            hint="Use seaborn.heatmap, plt.imshow or sklearn's ConfusionMatrixDisplay.",
        )
    true, said = (np.bincount(each, minlength=classes) for each in (data.labels, data.predictions))
    for heat in found:
        turned = (heat.row_role, heat.column_role) in ((PREDICTED, TRUE), (PREDICTED, None), (None, TRUE))
        rows, columns = (said, true) if turned else (true, said)
        unsaid = heat.explained and heat.row_role is None and heat.column_role is None
        if (
            margins_fit(heat, rows, columns)
            or is_share(heat)
            or (unsaid and margins_fit(heat, columns, rows))
        ):
            return
        if sum(heat.numbers) == len(data.labels) and not np.array_equal(heat.values, np.round(heat.values)):
            return  # the colors stand for logarithms, and the numbers are written in
    heat = found[0]
    if margins_fit(heat, columns, rows):
        raise Mismatch(
            "The rows add up to how often each class was predicted, the columns to how often it is true: "
            "rows and columns are exchanged.",
            hint="confusion_matrix(true_labels, predicted_labels), or counts[true, predicted] += 1.",
            look_for="confusion_matrix() | from_predictions(), _[_, _] | _[_][_], bincount() | at()",
        )
    raise Mismatch(
        f"The rows of the matrix do not add up to the images of each class: all together it counts "
        f"{float(heat.values.sum()):.0f} of {len(data.labels)} images.",
        hint="Collect labels and predictions of all batches, then count every image once.",
    )


@pytest.mark.component("plot_confusion_matrix")
@pytest.mark.because("confusion_matrix_is_drawn")
@pytest.mark.weight(0.25)
def test_confusion_matrix_names_the_classes(student, class_names):
    """The names of all classes are written on both axes of the confusion matrix."""
    from grader.kit import classes_named, drawn, heat_maps

    _, run = drawn(student, "plot_confusion_matrix", class_names)
    if any(heat.is_named for heat in heat_maps(run, class_names)):
        return
    for figure in run.figures:
        for axes in figure.axes:
            sides = [
                set(classes_named(" ".join(ticks), class_names)) for ticks in (axes.x_ticks, axes.y_ticks)
            ]
            bare = sum(len(side) < len(class_names) for side in sides)
            written = Counter(classes_named(" ".join(axes.texts), class_names))
            if all(written[label] >= bare for label in range(len(class_names))):
                return
    raise Mismatch(
        "The names of the classes are not on both axes.",
        hint="seaborn.heatmap(..., xticklabels=class_names, yticklabels=class_names).",
        look_for=MAPS,
        diagnosis="class_names_missing",
    )


@pytest.mark.component("plot_confusion_matrix")
@pytest.mark.weight(0.25)
def test_confusion_matrix_asks_the_model(student, class_names):
    """plot_confusion_matrix runs the model on the images, in evaluation mode."""
    require_asked(student, "plot_confusion_matrix", class_names)


def require_asked(student, function, class_names):
    """Check that a plotting function asks the model, with dropout off."""
    from grader.kit import drawn

    _, run = drawn(student, function, class_names)
    if not run.forwards:
        raise Mismatch(
            "The model is never called.",
            hint="model(images).argmax(dim=1) is what it predicts for each image.",
        )
    if any(forward.training for forward in run.forwards):
        raise Mismatch(
            "The model is run in training mode: dropout is on.",
            hint="model.eval() first.",
            look_for="train(), no_grad() | inference_mode(), for",
        )


@pytest.mark.component("plot_classwise_predictions")
@pytest.mark.weight(0.25)
def test_predictions_are_drawn(student, class_names):
    """plot_classwise_predictions shows 24 images, 4 per class."""
    from grader.kit import drawn, images_within, pictures

    data, run = drawn(student, "plot_classwise_predictions", class_names)
    shown, _ = pictures(run, data)
    if shown == 1:  # a grid of images in one, perhaps
        shown = max(images_within(run, data), 1)
    if not 4 * len(class_names) <= shown <= 4 * len(class_names) + 2:
        raise Mismatch(
            f"It shows {shown} images instead of {4 * len(class_names)}.",
            hint="" if shown else "imshow for each image that was collected; int(label) finds its class.",
            look_for="next()",
        )


def shown_pictures(student, class_names):
    """(data, how many images are shown, pictures) of plot_classwise_predictions.

    The pictures are those images that can be recognized.
    """
    from grader.kit import drawn, pictures

    data, run = drawn(student, "plot_classwise_predictions", class_names)
    shown, found = pictures(run, data)
    if not shown:
        raise Mismatch("No image is shown.", hint="imshow for every image, each in an axes of its own.")
    return data, shown, found


@pytest.mark.component("plot_classwise_predictions")
@pytest.mark.because("predictions_are_drawn")
@pytest.mark.weight(0.25)
def test_predictions_are_of_every_class(student, class_names):
    """plot_classwise_predictions shows four different images of each class."""
    data, shown, found = shown_pictures(student, class_names)
    numbers = [picture.number for picture in found]
    if len(numbers) < shown - 2:
        return  # they are resized, or a grid in one image: another check counts them
    by_class = [
        sorted(Counter(int(label) for label in labels[sorted(set(numbers))]).items())
        for labels in (data.labels, data.predictions)
    ]
    if [(label, 4) for label in range(len(class_names))] not in by_class:
        counts = ", ".join(f"{count} of {class_names[label]}" for label, count in by_class[0])
        raise Mismatch(
            f"The different images that are shown are {counts}; there should be 4 of each class.",
            hint="For every label: the first samples_per_class images whose true label it is.",
        )


@pytest.mark.component("plot_classwise_predictions")
@pytest.mark.because("predictions_are_drawn")
@pytest.mark.weight(0.25)
def test_predictions_are_captioned(student, class_names):
    """Each image carries its true and its predicted label, the right way round."""
    from grader.kit import PREDICTED, TRUE, classes_named, numbers_named, stated

    data, _, found = shown_pictures(student, class_names)
    for picture in found:
        true, said = int(data.labels[picture.number]), int(data.predictions[picture.number])
        text = "\n".join(picture.captions)
        classes = {*classes_named(text, class_names), *numbers_named(text, class_names)}
        if not {true, said} <= classes:
            raise Mismatch(
                f"An image of {class_names[true]} that the model takes for {class_names[said]} does not "
                "carry both names.",
                hint='ax.set_title(f"True: {...}, predicted: {...}") for every image.',
                look_for=CAPTIONS,
            )
        roles = [stated(caption, class_names) for caption in picture.captions]
        if true != said and any((r.get(TRUE), r.get(PREDICTED)) == (said, true) for r in roles):
            raise Mismatch(
                f"An image of {class_names[true]} that the model takes for {class_names[said]} is captioned "
                "the other way round.",
                hint="True labels are the loader's, predictions the model's: follow both to the title.",
                look_for=CAPTIONS,
                diagnosis="labels_exchanged",
            )


@pytest.mark.component("plot_classwise_predictions")
@pytest.mark.weight(0.25)
def test_predictions_ask_the_model(student, class_names):
    """plot_classwise_predictions runs the model on the images, in evaluation mode."""
    require_asked(student, "plot_classwise_predictions", class_names)
