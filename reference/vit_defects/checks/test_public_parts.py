"""Public checks of the file itself, PreNorm, FeedForward and Attention."""

import pytest

from grader.kit import AffineFake, Mismatch, answer, named, require_dropout, same

# sizes that all differ, so that one in the place of another shows
DIM, HEADS, DIM_HEAD, HIDDEN, DEPTH = 22, 5, 3, 31, 3


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
    feed_forward = student.build("FeedForward", 22, 31).randomized(0.3)
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
    feed_forward = student.build("FeedForward", DIM, HIDDEN).randomized(0.3)
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
        lambda rate: student.build("FeedForward", DIM, HIDDEN, dropout=rate).randomized(0.3).repeated,
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
    attention = student.build("Attention", 22, heads=5, dim_head=3).randomized(0.3)
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
    attention = student.build("Attention", 22, heads=5, dim_head=3).randomized(0.3)
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
        attention = student.build("Attention", DIM, heads=heads, dim_head=dim_head).randomized(0.3)
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
        raise Mismatch(
            f"With dim_head=128 the scores differ much {'more' if ratio > 1 else 'less'} than with "
            "dim_head=8. Divided by sqrt(dim_head) they differ about as much.",
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
    sizes = {"heads": HEADS, "dim_head": DIM_HEAD}
    require_dropout(
        lambda rate: student.build("Attention", DIM, dropout=rate, **sizes).randomized(0.3).repeated,
        student.tensor(4, 9, DIM),
    )
