"""Public checks of the Transformer and the ViT."""

import pytest

from grader.kit import AffineFake, Cause, Mismatch, require_dropout, same

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
RANDOM = "randperm() | shuffle(), rand() | randn() | rand_like() | randn_like()"


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
            f"Of {len(fixed)} tokens those at {places} are the same for all images; only the first one "
            "should be: the class token."
            if places
            else f"Of {len(fixed)} tokens none is the same for all images; the first one should be: the "
            "class token.",
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
            raise Mismatch(
                f"With pool={pool!r} the scores depend on {'patches' if moves else 'the class token alone'}.",
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
