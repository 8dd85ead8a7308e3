"""Public checks of VisionTransformer."""

import pytest
import torch

from grader.kit import AffineFake, Fake, Library, Mismatch, named, numbered_images, same

# of the model: 3 x 3 patches of 4 x 4 pixels, 2 channels
MODEL = {"image_size": 12, "patch_size": 4, "in_channels": 2, "num_classes": 5, "dim": 20}
PATCHES, CLASSES, FEATURES, DEPTH, IMAGES = 9, 5, 20, 3, 3
POOLS = ("cls", "mean")
CAT = "cat() | concat()"


class Around:
    """The model around known patches and fakes of its blocks.

    Attributes:
        patches: (images, patches, dim), as the patch embedding gives them.
        model: None where it does not use EncoderBlock: what stands inline is looked at when it is graded.
        first: What the first block gets, (images, tokens, dim).
        scores: (images, classes).
    """

    def __init__(self, student, *, blocks=None, patches=None, prepare=None, **settings):
        self.patches = student.tensor(IMAGES, PATCHES, FEATURES) if patches is None else patches
        places = {
            "PatchEmbedding": Fake.rows(self.patches),
            "EncoderBlock": blocks or AffineFake(parameters=7, heads=2),
        }
        sizes = {**MODEL, "depth": DEPTH, "heads": 2, "dropout": 0.0, **settings}
        self.model = student.build("VisionTransformer", replace=places, **sizes)
        if not self.model.constructions("EncoderBlock"):
            self.model = None
            return
        if prepare is None:
            self.model.randomize()
        else:
            prepare(self.model)
        self.images = torch.from_numpy(numbered_images(IMAGES, student.next_seed(), (2, 12, 12)))
        self.scores = self.model(self.images, shape=(IMAGES, CLASSES))
        self.first = self.model.inputs_of("EncoderBlock")[0]
        if self.first.ndim != 3 or self.first.shape[::2] != (IMAGES, FEATURES):
            raise Mismatch(
                f"The blocks get a tensor of the shape {tuple(self.first.shape)}; it should be (batch, "
                f"tokens, dim): {IMAGES} images and dim={FEATURES}."
            )
        pool = settings.get("pool", "cls")
        tokens, expected = self.first.shape[1], PATCHES + (pool == "cls")
        if tokens != expected:
            raise Mismatch(
                f"With pool={pool!r} and {PATCHES} patches, the blocks get {tokens} tokens; there should be "
                f"{expected}.",
                hint="A class token stands in front of the patches with pool='cls', and only then.",
                look_for=CAT,
            )

    def blocks_called(self):
        """The numbers of the blocks in the order in which they are called."""
        return [call.instance for call, _ in self.model.calls if call.component == "EncoderBlock"]


def stays_behind(student, positions):
    """Whether something of the model is still where it was after the model moved to another device."""
    model = student.build("VisionTransformer", **MODEL, depth=1, heads=2, positions=positions)
    try:
        model.call("to", "meta")  # a device without numbers, which every machine has
        model.call("", Library("torch.empty", 2, 2, 12, 12, device="meta"), training=False)
    except Mismatch as error:
        return "RuntimeError" in error.message and "meta" in error.message
    return False


def with_zeros(model):
    """The model with all that learns set to zero: what is left does not learn."""
    weights = model.weights()
    model.set_weights({p.name: 0 * weights[p.name] for p in model.parameters if p.trainable})
    return model


def instead_of_a_wrong_attention(student, dim, heads):
    """A fake for MultiHeadSelfAttention where that returns no shares for each head: it is asked itself."""
    x = student.tensor(2, 4, dim)

    def weights():
        component = student.build("MultiHeadSelfAttention", dim, heads)
        both = component.call("", x, return_weights=True, training=False).returned
        return both.items(2)[1].tensor(2, heads, 4, 4)

    found = student.attempted(weights)
    if found is not None and same(found.sum(dim=-1), torch.ones(2, heads, 4), tolerance=1e-3):
        return {}
    return {"MultiHeadSelfAttention": AffineFake(heads=heads)}


def is_shown_by_a_wrong_attention(student):
    """Whether what `attention` shows is a wrong attention's: then it has to show a right one's at all."""
    places = instead_of_a_wrong_attention(student, SMALL["dim"], SMALL["heads"])
    if places:
        settings = {**SMALL, "depth": 1, "mlp_ratio": 2.0, "dropout": 0.0}
        model = student.build("VisionTransformer", replace=places, **settings)
        model.call("attention", student.tensor(2, 2, 8, 8), training=False).returned.tensor()
    return bool(places)


@pytest.mark.component("VisionTransformer")
@pytest.mark.parametrize("pool", ["cls", "mean"])
@pytest.mark.weight(0.25)
def test_model_gives_scores(student, pool):
    """An image becomes a score for every class, with either way of pooling and either kind of positions."""
    places = instead_of_a_wrong_attention(student, 12, 3)
    for positions in ("learned", "sinusoidal"):
        sizes = {"image_size": 8, "num_classes": 5, "dim": 12, "depth": 2, "heads": 3}
        model = student.build("VisionTransformer", replace=places, **sizes, positions=positions, pool=pool)
        model(student.tensor(2, 3, 8, 8), shape=(2, 5))
        tokens = 5 if pool == "cls" else 4
        shown = model.call("attention", student.tensor(2, 3, 8, 8), training=False).returned
        if pool == "mean" and tuple(shown.tensor().shape) == (2, 3, 5, 5):
            raise Mismatch(
                "With pool='mean' and 4 patches there are 5 tokens; there should be no class token.",
                hint="Make the class token, and put it in front, only with pool='cls'.",
                look_for=CAT,
            )
        if shown.tensor(2, None, tokens, tokens).shape[1] != 3:
            raise Mismatch(
                f"With heads=3, attention gives the weights of {shown.tensor().shape[1]} heads.",
                hint="Hand the sizes on: EncoderBlock(dim, heads, mlp_ratio, dropout).",
                look_for="EncoderBlock()",
            )


@pytest.mark.component("VisionTransformer")
@pytest.mark.because("model_gives_scores")
@pytest.mark.weight(0.25)
def test_model_has_its_class_token_in_front(student):
    """With pool='cls', the blocks get the class token first, and then the patches with their positions."""
    around = Around(student)
    if around.model is None:
        return
    rest = around.first[:, 1:] - around.patches
    if same(rest[1:], rest[:-1], tolerance=1e-3):
        return
    behind = around.first[:, :PATCHES] - around.patches
    if same(behind[1:], behind[:-1], tolerance=1e-3):
        raise Mismatch(
            "The class token stands behind the patches; it should stand in front of them.",
            hint="torch.cat([class_token, patches], dim=1)",
            look_for=CAT,
        )
    raise Mismatch(
        "What the blocks get behind the first token is not the patches, each plus something that all "
        "images share.",
        hint="torch.cat([class_token, patches], dim=1), and then tokens + positions.",
        look_for=CAT,
    )


@pytest.mark.component("VisionTransformer")
@pytest.mark.because("model_gives_scores", "model_has_its_class_token_in_front")
@pytest.mark.weight(0.25)
def test_model_tells_places_apart(student):
    """Each patch gets a position of its own: the same patch at two places makes two tokens."""
    alike = student.tensor(IMAGES, 1, FEATURES).repeat(1, PATCHES, 1)
    for pool in POOLS:
        around = Around(student, pool=pool, patches=alike)
        if around.model is None:
            return
        found = around.first[0, -PATCHES:]
        distances = (found[:, None] - found[None]).abs().amax(dim=-1) + torch.eye(PATCHES)
        if distances.min() < 1e-5:
            raise Mismatch(
                f"With pool={pool!r}, equal patches make equal tokens: the model cannot tell where a patch "
                "was.",
                hint="tokens + positions, before the first block.",
                look_for=CAT,
            )


@pytest.mark.component("VisionTransformer")
@pytest.mark.because("model_has_its_class_token_in_front", "model_tells_places_apart")
@pytest.mark.weight(0.25)
def test_model_has_fixed_positions(student):
    """With positions='sinusoidal', the table is added as it is: position 0 belongs to the class token."""
    if Around(student, positions="sinusoidal").model is None:
        return
    table = student.attempted(
        lambda: student.call("sinusoidal_positions", PATCHES + 1, FEATURES).returned.array(
            PATCHES + 1, FEATURES
        )
    )
    if table is None:
        return
    table = torch.from_numpy(table).float()
    for pool in POOLS:
        around = Around(student, pool=pool, positions="sinusoidal")
        if around.model is None:
            return
        extra = int(pool == "cls")
        rest = (around.first[:, extra:] - around.patches)[0]
        if same(rest, table[extra : PATCHES + extra], tolerance=1e-3):
            continue
        if extra and same(rest, table[:PATCHES], tolerance=1e-3):
            raise Mismatch(
                "With pool='cls' and positions='sinusoidal', the first patch has position 0; that is the "
                "class token's, and the patches have the ones from 1 on.",
                hint="Put the class token in front first, then add sinusoidal_positions(patches + 1, dim).",
                look_for="_ + self.positions | self.positions + _, cat()",
            )
        zero = Around(student, pool=pool, positions="sinusoidal", prepare=with_zeros)
        left = (zero.first[:, extra:] - zero.patches)[0]
        if float(left.abs().max()) < 1e-6:
            fresh = Around(student, pool=pool, positions="sinusoidal", prepare=lambda model: model)
            begins = (fresh.first[:, extra:] - fresh.patches)[0]
            if same(begins, table[extra : PATCHES + extra], tolerance=1e-3):
                raise Mismatch(
                    "With positions='sinusoidal', the table is a parameter that learns; it should stay as "
                    "it is.",
                    hint="A buffer does not learn: self.register_buffer('positions', table).",
                    look_for="Parameter(sinusoidal_positions()) | Parameter(sinusoidal_positions()[None]), "
                    "Parameter()",
                )
            raise Mismatch(
                "With positions='sinusoidal', the positions are learned, and begin with other numbers than "
                "sinusoidal_positions gives.",
                hint="Ask for positions == 'sinusoidal' where the positions are made.",
                look_for="sinusoidal_positions()",
            )
        raise Mismatch(
            f"With pool={pool!r} and positions='sinusoidal', what is added to the patches is not what "
            f"sinusoidal_positions({PATCHES + extra}, dim) gives"
            + (", from position 1 on." if extra else "."),
            look_for="sinusoidal_positions()",
        )
    kept, moved = (stays_behind(student, positions) for positions in ("learned", "sinusoidal"))
    if moved and not kept:
        raise Mismatch(
            "When the model moves to another device, the positions of positions='sinusoidal' stay behind, "
            "and it fails there.",
            hint="A buffer moves with the model: self.register_buffer('positions', table).",
            look_for="sinusoidal_positions()",
        )


@pytest.mark.component("VisionTransformer")
@pytest.mark.because("model_has_its_class_token_in_front", "model_tells_places_apart")
@pytest.mark.weight(0.25)
def test_model_learns_its_positions_and_its_class_token(student):
    """The class token and, with positions='learned', the positions are parameters: training changes them."""
    around = Around(student, prepare=with_zeros)
    if around.model is None:
        return
    if float((around.first[:, 1:] - around.patches).abs().max()) > 1e-5:
        raise Mismatch(
            "With all that learns set to 0, positions are added to the patches all the same: they do not "
            "learn.",
            hint="With positions='learned', they are an nn.Parameter, (1, tokens, dim).",
            look_for="register_buffer(), positions",
        )
    if float(around.first[:, 0].abs().max()) > 1e-6:
        raise Mismatch(
            "With all that learns set to 0, there is a class token all the same: it does not learn.",
            hint="self.class_token = nn.Parameter(torch.zeros(1, 1, dim))",
            look_for="randn(1, 1, _) | zeros(1, 1, _) | ones(1, 1, _) | register_buffer(), class_token",
        )


@pytest.mark.component("VisionTransformer")
@pytest.mark.because("model_has_fixed_positions", "model_learns_its_positions_and_its_class_token")
@pytest.mark.weight(0.25)
def test_model_gives_its_class_token_a_position(student):
    """The class token has a position, too: position 0."""
    for positions in ("sinusoidal", "learned"):
        around = Around(student, positions=positions)
        if around.model is None:
            return
        learned = {p.name: p.shape for p in around.model.parameters if p.trainable}
        token, weights = around.first[0, 0], around.model.weights()
        bare = [n for n in learned if weights[n].numel() == FEATURES and same(weights[n].flatten(), token)]
        if bare:
            raise Mismatch(
                f"With positions={positions!r}, {named(bare[0])} goes into the blocks as it is: no position "
                "is added to the class token.",
                hint="Put the class token in front of the patches first, then add a position to every "
                "token, patches + 1 of them.",
                look_for=CAT,
            )


@pytest.mark.component("VisionTransformer")
@pytest.mark.because("model_gives_scores")
@pytest.mark.weight(0.25)
def test_model_runs_its_blocks_in_order(student):
    """depth blocks follow each other, each with weights of its own and the sizes that the model was given."""
    around = Around(student, mlp_ratio=1.5, dropout=0.25)
    if around.model is None:
        return
    called = around.blocks_called()
    if len(called) != DEPTH:
        raise Mismatch(
            f"With depth={DEPTH}, {len(called)} blocks are called.",
            hint="for block in self.blocks: x = block(x), for all of them.",
            look_for="blocks[:-1] | blocks[:_], range(), for",
        )
    if len(set(called)) < DEPTH:
        raise Mismatch(
            f"With depth={DEPTH}, the same block is called several times: its weights are used again.",
            hint="One EncoderBlock is constructed and put into every place, as [block] * depth or "
            "dict.fromkeys(names, block) do. Construct one for each place.",
            look_for="_ * depth, EncoderBlock()",
        )
    for before, seen in zip(
        around.model.inputs_of("EncoderBlock"), around.model.inputs_of("EncoderBlock")[1:], strict=False
    ):
        if not same(seen, before, tolerance=1e-3):  # these blocks hand on what they get
            raise Mismatch(
                "What a block gets is not what the block before it gave.",
                hint="for block in self.blocks: x = block(x)",
                look_for="for",
            )
    sizes, defaults = {"dim": FEATURES, "heads": 2, "mlp_ratio": 1.5}, {"mlp_ratio": 4.0}
    for given in around.model.constructions("EncoderBlock"):
        for name, size in sizes.items():
            got = given.get(name, defaults.get(name))
            if got is not None and got != size:
                raise Mismatch(
                    f"The model was given {name}={size}, and makes its blocks with {name}={got}.",
                    hint="EncoderBlock(dim, heads, mlp_ratio, dropout)",
                    look_for="EncoderBlock()",
                )
        if 0.25 not in given.values():
            raise Mismatch(
                "The model was given dropout=0.25, and makes its blocks without it.",
                hint="EncoderBlock(dim, heads, mlp_ratio, dropout)",
                look_for="EncoderBlock()",
            )


@pytest.mark.component("VisionTransformer")
@pytest.mark.because("model_gives_scores", "model_has_its_class_token_in_front")
@pytest.mark.weight(0.25)
def test_model_pools_as_it_is_told(student):
    """pool='cls' classifies the first token, pool='mean' the mean of all tokens."""
    for pool in POOLS:
        base = student.tensor(1, PATCHES, FEATURES)
        patches = base.repeat(IMAGES, 1, 1)
        patches[1, 0] += 3 * student.tensor(FEATURES)  # an image with another first patch
        patches[2, PATCHES - 1] += 3 * student.tensor(FEATURES)  # and one with another last patch
        around = Around(student, pool=pool, patches=patches)
        if around.model is None:
            return
        first, last = (not same(around.scores[n], around.scores[0]) for n in (1, 2))
        if pool == "cls" and (first or last):
            raise Mismatch(
                "With pool='cls' and blocks that mix no tokens, the scores depend on patches: it is not "
                "the class token alone that is classified.",
                hint="x[:, 0] with pool='cls', x.mean(dim=1) with pool='mean'.",
                look_for="mean(), _[:, -1]",
            )
        if pool == "mean" and not (first and last):
            blind = "With pool='mean' and blocks that mix no tokens, the last patch changes no score."
            if not first:
                blind = "With pool='mean' and blocks that mix no tokens, the first patch changes no score."
            if not first and not last:
                blind = "With pool='mean' and blocks that mix no tokens, no patch changes a score."
            raise Mismatch(
                blind,
                hint="x.mean(dim=1) over all tokens: with pool='mean' there is no class token to leave out.",
                look_for="_[:, 1:], _[:, 0]",
            )


@pytest.mark.component("VisionTransformer")
@pytest.mark.because("model_gives_scores", "model_pools_as_it_is_told")
@pytest.mark.weight(0.25)
def test_model_gives_no_probabilities(student):
    """The scores are those before any softmax: negative and positive, and they add up to nothing fixed."""
    around = Around(student, pool="mean")
    if around.model is None:
        return
    scores = [around.scores]
    weights = {p.name: around.model.weights()[p.name] for p in around.model.parameters if p.trainable}
    for factor in (-1, 4, -4):  # scores of one sign by chance are so only once
        around.model.set_weights({name: factor * value for name, value in weights.items()})
        scores.append(around.model(around.images, shape=(IMAGES, CLASSES)))
    found = torch.stack(scores)
    if bool((found >= 0).all()) or bool((found <= 0).all()):
        sums = same(found.exp().sum(dim=-1) if found.max() <= 0 else found.sum(dim=-1), torch.ones(4, IMAGES))
        raise Mismatch(
            f"The scores all have one sign{', as those of a softmax do' if sums else ''}.",
            hint="Nothing after the last linear layer: the loss applies the softmax itself.",
            look_for="softmax() | Softmax() | log_softmax() | sigmoid() | Sigmoid() | relu() | ReLU()",
        )


@pytest.mark.component("VisionTransformer")
@pytest.mark.because("model_gives_scores", "model_runs_its_blocks_in_order", "model_gives_no_probabilities")
@pytest.mark.weight(0.25)
def test_model_normalizes_at_its_end(student):
    """What is classified is normalized: ten times larger tokens from the last block give the same scores."""
    for pool in POOLS:
        small, large = (
            AffineFake(scale=(1.0, 1.0, factor), parameters=7, heads=2) for factor in (30.0, 300.0)
        )
        one = Around(student, pool=pool, blocks=small)
        if one.model is None:
            return
        weights = one.model.weights()
        other = Around(
            student,
            pool=pool,
            blocks=large,
            patches=one.patches,
            prepare=lambda model, held=weights: model.set_weights(held),
        )
        if not same(other.scores, one.scores, tolerance=1e-2):
            raise Mismatch(
                f"With pool={pool!r} and a last block that gives ten times larger tokens, the scores are "
                "others: nothing is normalized after the last block.",
                hint="self.norm = nn.LayerNorm(dim), after the last block and before the linear layer.",
                look_for="head() | classifier() | fc()",
            )


WIDE = 5.0  # how many times wider than a token an MLP is: no other layer has as many numbers
SMALL = {"image_size": 8, "patch_size": 4, "in_channels": 2, "num_classes": 5, "dim": 12, "heads": 2}


@pytest.mark.component("VisionTransformer")
@pytest.mark.because("model_gives_scores")
@pytest.mark.weight(0.25)
def test_model_shows_its_last_block(student):
    """attention shows the last block: with other weights of the last block, it shows others."""
    if is_shown_by_a_wrong_attention(student):
        return
    one, two = (
        student.build("VisionTransformer", **SMALL, depth=depth, mlp_ratio=WIDE, dropout=0.0)
        for depth in (1, 2)
    )
    first, held = one.weights(), two.randomize()
    images = student.tensor(2, 2, 8, 8)

    def shown():
        return two.call("attention", images, training=False).returned.tensor(2, 2, 5, 5)

    before = shown()
    if not same(before.sum(dim=-1), torch.ones(2, 2, 5), tolerance=1e-3):
        return  # an attention that stands inline: it is looked at when it is graded
    own = [name for name in held if name not in first]  # of the second block
    two.set_weights({name: held[name] + student.tensor(*held[name].shape) for name in own})
    if own and same(shown(), before):
        raise Mismatch(
            f"With other weights of the last block ({named(own[0])} and further ones), attention shows what "
            "it showed before: the weights are those of another block.",
            hint="Run all blocks but the last, and ask the last one's attention for its weights.",
            look_for="blocks[0]",
        )
    # where the last block has a name of its own, it is the other one whose names a model of one block lacks
    mlps = [
        [name for name in names if held[name].numel() == WIDE * SMALL["dim"] ** 2]
        for names in (own, held.keys() - set(own))
    ]
    if not all(mlps):
        return
    changed = []
    for names in mlps:
        two.set_weights({**held, **{name: held[name].flip(0) for name in names}})
        changed.append(not same(shown(), before))
    if all(changed):
        raise Mismatch(
            "With another MLP in the last block, attention shows other weights: it gives the last block's "
            "attention what this block itself has made, and not what comes in.",
            hint="Run all blocks but the last, and ask the last one's attention for its weights.",
            look_for="for",
        )


@pytest.mark.component("VisionTransformer")
@pytest.mark.because("model_shows_its_last_block", "model_tells_places_apart")
@pytest.mark.weight(0.25)
def test_model_shows_attention_to_normalized_tokens(student):
    """In attention, the last block's attention gets its normalized tokens, as it does in forward."""
    if is_shown_by_a_wrong_attention(student):
        return
    settings = {**SMALL, "depth": 1, "mlp_ratio": 2.0, "dropout": 0.0, "pool": "mean"}
    patches, held, shown = student.tensor(2, 4, 12), None, []
    images = torch.from_numpy(numbered_images(2, student.next_seed(), (2, 8, 8)))

    def without_positions(model):
        weights = held or model.randomized().weights()
        return {n: 0 * w if w.numel() == 4 * 12 and w.shape[-1] == 12 else w for n, w in weights.items()}

    tokens = student.build(
        "VisionTransformer",
        replace={"PatchEmbedding": Fake.rows(patches), "EncoderBlock": AffineFake(heads=2)},
        **settings,
    )
    if not tokens.constructions("EncoderBlock"):
        return
    tokens.set_weights(without_positions(tokens))
    tokens(images, shape=(2, 5))
    if not same(tokens.inputs_of("EncoderBlock")[0], patches):
        return  # what else is added cannot be taken away here
    for factor in (1, 5):
        model = student.build(
            "VisionTransformer", replace={"PatchEmbedding": Fake.rows(factor * patches)}, **settings
        )
        held = without_positions(model)
        model.set_weights(held)
        shown.append(model.call("attention", images, training=False).returned.tensor(2, 2, 4, 4))
    if not same(*shown, tolerance=2e-2):
        raise Mismatch(
            "For tokens five times as large, model.attention shows other weights: it does not normalize the "
            "tokens before the last block's attention.",
            hint="Normalize the tokens first, as the block's forward does.",
            look_for="attention(x, _) | attention(x, return_weights=True) | attn(x, _), attention(_, "
            "return_weights=True) | attn(_, return_weights=True)",
        )
