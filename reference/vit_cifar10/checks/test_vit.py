"""VisionTransformer: tokens, chain of blocks and head with fakes; its attention as a whole."""

import contextlib
import itertools

import pytest
import torch
import torch.nn.functional as F

from grader.kit import AffineFake, Fake, Library, Mismatch, answer, named, numbered_images, same
from grader.kit.transformers import block_weights, layer_norms, linear_layers

pytestmark = pytest.mark.component("VisionTransformer")
SIDE, PATCH, CHANNELS, CLASSES, DIM, DEPTH, HEADS = 8, 4, 3, 7, 12, 3, 2
PATCHES = (SIDE // PATCH) ** 2
BLOCK = AffineFake(scale=(0.9, 0.6, 1.2), shift=(0.3, -0.2, 0.1), roll=1, parameters=7, heads=HEADS)
SIZES = {"image_size": SIDE, "patch_size": PATCH, "in_channels": CHANNELS, "num_classes": CLASSES, "dim": DIM}


def all_sizes(student, oracle):
    """The sizes of a small model, and those of the training."""
    return {**SIZES, "heads": HEADS}, oracle.own_sizes(student)


class Inside:
    """A model with a fake in place of its blocks and known patches, and what went through it.

    Attributes:
        count, dim, classes: Patches of an image, features of a token, scores.
        patches: (images, patches, dim), as the patch embedding gives them.
        first: What the first block was given, (images, tokens, dim).
        last: What the last block should have given.
    """

    def __init__(self, student, *, moved=True, images=2, **settings):
        sizes = {**SIZES, "depth": DEPTH, "heads": HEADS, "dropout": 0.0, **settings}
        side, channels, classes = (sizes[name] for name in ("image_size", "in_channels", "num_classes"))
        self.count, self.dim, self.classes = (side // sizes["patch_size"]) ** 2, sizes["dim"], classes
        self.patches = student.tensor(images, self.count, self.dim)
        places = {"PatchEmbedding": Fake.rows(self.patches), "EncoderBlock": BLOCK}
        self.model = student.build("VisionTransformer", replace=places, **sizes)
        self.weights = self.model.randomize() if moved else self.model.weights()
        shown = torch.from_numpy(numbered_images(images, student.next_seed(), (channels, side, side)))
        self.output = self.model(shown, shape=(images, classes))
        seen = self.model.inputs_of("EncoderBlock")
        self.instances = [call.instance for call, _ in self.model.calls if call.component == "EncoderBlock"]
        self.first = self.last = seen[0]
        for instance in self.instances:
            self.last = answer(BLOCK, instance, self.last)

    def bare_class_token(self):
        """Whether the first token is a vector of the model's own, with no position added to it."""
        return any(
            same(self.first[0, 0], w.flatten())
            for w in self.weights.values()
            if w.numel() == self.dim and w.any()
        )

    def scores(self, pooled):
        """The head's scores, under every reading of its weights."""
        return (F.linear(pooled, *head) for head in linear_layers(self.weights, self.dim, self.classes))


@pytest.mark.explains(
    "model_gives_scores",
    "everything_learns",
    "model_has_its_class_token_in_front",
    "model_tells_places_apart",
    "model_has_fixed_positions",
    "model_gives_its_class_token_a_position",
)
@pytest.mark.weight(3)
@pytest.mark.parametrize("pool", ["cls", "mean"])
def test_tokens_are_patches_with_positions(student, reference, pool):
    """The blocks get the patches, each plus its position; with pool='cls', a class token is in front."""
    for sizes in all_sizes(student, reference.oracle):
        require_tokens(reference, Inside(student, pool=pool, **sizes), pool)


def require_tokens(reference, inside, pool):
    """The same in one size."""
    patches, dim = inside.count, inside.dim
    tokens, extra = inside.first.shape[1], pool == "cls"
    if tokens != patches + extra:
        if pool == "mean" and tokens == patches + 1:
            raise reference.named("vit_class_token_with_mean")
        raise Mismatch(
            f"With pool='{pool}' and {patches} patches, the blocks get {tokens} tokens; they should get "
            f"{patches + extra}."
        )
    rest = inside.first[:, extra:] - inside.patches
    if not same(rest[1:], rest[:-1], tolerance=1e-3):
        behind = inside.first[:, :patches] - inside.patches
        if extra and same(behind[1:], behind[:-1], tolerance=1e-3):
            raise reference.named("vit_class_token_last")
        raise Mismatch("What the blocks get is not the patches plus something that every image shares.")
    if extra and not same(inside.first[1:, 0], inside.first[:-1, 0], tolerance=1e-3):
        raise Mismatch("The class token is different for each image.")
    if float(rest[0].std(dim=0).max()) < 1e-4:
        raise reference.named("vit_without_positions")
    learned = [w for w in inside.weights.values() if w.numel() in (tokens * dim, patches * dim)]
    whole = any(w.numel() == tokens * dim for w in learned)
    if extra and inside.bare_class_token():
        if not whole and any(same(rest[0], w.reshape(patches, dim)) for w in learned):
            raise reference.named("vit_positions_of_patches_only")
        if whole:
            raise reference.named("vit_class_token_without_position")


@pytest.mark.explains("model_has_fixed_positions", "model_gives_its_class_token_a_position")
@pytest.mark.weight(2)
@pytest.mark.because("tokens_are_patches_with_positions")
@pytest.mark.parametrize("pool", ["cls", "mean"])
def test_fixed_positions_are_the_table(student, reference, pool):
    """With positions='sinusoidal', the fixed table is added; its position 0 is the class token's."""
    for sizes in all_sizes(student, reference.oracle):
        inside = Inside(student, pool=pool, positions="sinusoidal", moved=False, **sizes)
        require_fixed_positions(student, reference, inside, pool)
    kept, moved = (_stays_behind(student, pool, positions) for positions in ("learned", "sinusoidal"))
    if moved and not kept:
        raise reference.named("vit_fixed_positions_stay_behind")


def _stays_behind(student, pool, positions):
    """Whether something of the model is still where it was after the model moved to another device."""
    model = student.build("VisionTransformer", depth=1, heads=HEADS, positions=positions, pool=pool, **SIZES)
    images = Library("torch.empty", 2, CHANNELS, SIDE, SIDE, device="meta")  # which every machine has
    try:
        model.call("to", "meta")
        model.call("", images, training=False)
    except Mismatch as error:  # what is on it has no numbers that could be returned
        return "RuntimeError" in error.message and "meta" in error.message
    return False


def require_fixed_positions(student, reference, inside, pool):
    """The same in one size."""
    patches, dim, extra = inside.count, inside.dim, pool == "cls"
    if inside.first.shape[1] != patches + extra:
        raise Mismatch(f"With pool='{pool}', the blocks get {inside.first.shape[1]} tokens.")
    table = reference.sinusoidal_positions(patches + extra, dim)
    own = torch.from_numpy(
        student.call("sinusoidal_positions", patches + extra, dim).returned.array(patches + extra, dim)
    ).float()
    rest = (inside.first[:, extra:] - inside.patches)[0]
    if any(same(rest, each[extra:], tolerance=1e-3) for each in (table, own)):
        if extra and inside.bare_class_token():
            raise reference.named("vit_class_token_without_position")
        if any(p.trainable and p.shape[-2:] == (patches + extra, dim) for p in inside.model.parameters):
            raise reference.named("vit_fixed_positions_learn")
        return
    if extra and any(same(rest, each[:-1], tolerance=1e-3) for each in (table, own)):
        raise reference.named("vit_positions_of_patches_only")
    if any(
        same(rest, w.reshape(-1, dim)[-patches:])
        for w in inside.weights.values()
        if w.numel() >= patches * dim
    ):
        raise reference.named("vit_positions_ignored")
    raise Mismatch(
        "With positions='sinusoidal', what is added to the patches is not the table of sines and cosines."
    )


@pytest.mark.explains(
    "attention_is_that_of_the_last_block",
    "everything_learns",
    "model_runs_its_blocks_in_order",
    "model_pools_as_it_is_told",
    "model_gives_no_probabilities",
    "model_normalizes_at_its_end",
)
@pytest.mark.weight(3)
@pytest.mark.parametrize("pool", ["cls", "mean"])
def test_scores_come_from_the_last_block(student, reference, pool):
    """depth blocks follow each other; their result is normalized, pooled and scored, without a softmax."""
    for sizes in all_sizes(student, reference.oracle):
        require_scores(reference, Inside(student, pool=pool, **sizes), pool)


def require_scores(reference, inside, pool):
    """The same in one size."""
    if len(inside.instances) == DEPTH and len(set(inside.instances)) < DEPTH:
        raise reference.named("vit_shares_a_block")
    if len(inside.instances) != DEPTH:
        if len(inside.instances) == DEPTH - 1:
            raise reference.named("vit_skips_the_last_block")
        raise Mismatch(f"With depth={DEPTH}, {len(inside.instances)} blocks are called.")
    last, weights = inside.last, inside.weights
    pooled = {"cls": last[:, 0], "mean": last.mean(dim=1)}

    def outputs(x):
        yield from inside.scores(x)

    def normed(x):
        return (each for z in layer_norms(x, weights) for each in inside.scores(z))

    def normed_first():
        for z in layer_norms(last, weights):
            yield from inside.scores(z[:, 0] if pool == "cls" else z.mean(dim=1))

    right = (normed(pooled[pool]), normed_first())
    if any(same(inside.output, each) for kind in right for each in kind):
        return
    if any(same(inside.output, each) for each in outputs(pooled[pool])):
        raise reference.named("vit_without_last_norm")
    other = "mean" if pool == "cls" else "cls"
    spread = (each for z in layer_norms(last, weights) for each in inside.scores(z.mean(dim=1)))
    if any(same(inside.output, each) for kind in (normed(pooled[other]), spread) for each in kind):
        raise reference.named("vit_pool_ignored")
    partly = itertools.chain(
        normed(last[:, 1:].mean(dim=1)),
        (each for z in layer_norms(last, weights) for each in inside.scores(z[:, 1:].mean(dim=1))),
    )
    if pool == "mean" and any(same(inside.output, each) for each in partly):
        raise reference.named("vit_mean_skips_the_first_patch")
    if same(inside.output.sum(dim=1), torch.ones(len(inside.output))) and bool((inside.output >= 0).all()):
        raise reference.named("vit_softmax")
    raise Mismatch("The scores are not head(norm(...)) of what the last block gives.")


@pytest.mark.explains("model_gives_scores", "model_runs_its_blocks_in_order")
@pytest.mark.weight(1)
def test_sizes_are_handed_on(student, reference):
    """The blocks get dim, heads, mlp_ratio and dropout as they were given."""
    inside = Inside(student, mlp_ratio=1.5, dropout=0.25, moved=False)
    for given in inside.model.constructions("EncoderBlock"):
        expected = {"dim": DIM, "heads": HEADS, "mlp_ratio": 1.5}
        for name, value in expected.items():
            if name in given and given[name] != value:
                told = reference.oracle.told(given[name])
                raise Mismatch(f"The blocks get {name}={told}; they should get {value}.")
        for name in ("heads", "mlp_ratio"):
            if name not in given:
                raise reference.named("vit_block_sizes_ignored")
        if 0.25 not in given.values():  # by whatever name
            raise reference.named("vit_dropout_not_handed_on")


def _cut_off_in_parts(student):
    """What receives no gradient in the parts that the model is made of: they are judged by themselves."""
    x = student.tensor(2, PATCHES + 1, DIM)
    for part in ("MultiHeadSelfAttention", "EncoderBlock"):
        with contextlib.suppress(Mismatch):
            component = student.build(part, DIM, HEADS)
            component.randomize()
            yield from component.gradients(x, x).missing
    with contextlib.suppress(Mismatch):
        patches = student.build("PatchEmbedding", SIDE, PATCH, CHANNELS, DIM)
        images, x = student.tensor(2, CHANNELS, SIDE, SIDE), student.tensor(2, PATCHES, DIM)
        yield from patches.gradients(images, x).missing


@pytest.mark.explains("model_learns_its_positions_and_its_class_token")
@pytest.mark.weight(1)
def test_everything_learns(student, reference):
    """Class token, positions, patches, blocks, norm and head receive gradients."""
    model = student.build("VisionTransformer", depth=2, heads=HEADS, mlp_ratio=2.0, dropout=0.0, **SIZES)
    model.randomize()
    found = model.gradients(student.tensor(3, CHANNELS, SIDE, SIDE), student.tensor(3, CLASSES))
    if found.missing:
        of_parts = tuple(f".{name}" for name in _cut_off_in_parts(student))
        for name in found.missing:
            if not name.endswith(of_parts):
                raise Mismatch(f"The parameter {named(name)} receives no gradient: it is cut off.")
    numbers = {torch.Size(p.shape).numel() for p in model.parameters if p.trainable}
    if (PATCHES + 1) * DIM not in numbers and PATCHES * DIM not in numbers:
        raise reference.named("vit_positions_not_learned")
    learned = {p.name for p in model.parameters if p.trainable}
    fixed = [value for name, value in model.weights().items() if name not in learned]
    if any(value.numel() == DIM for value in fixed):
        raise reference.named("vit_class_token_not_learned")


@pytest.mark.explains("model_shows_its_last_block", "model_shows_attention_to_normalized_tokens")
@pytest.mark.weight(2)
def test_attention_is_that_of_the_last_block(student, reference):
    """model.attention gives the last block's weights, (batch, heads, tokens, tokens), for each image."""
    # no other layer of a block has as many numbers as one of this MLP
    sizes = {"heads": HEADS, "mlp_ratio": WIDE, "dropout": 0.0, **SIZES}
    places = {} if _shows_shares(student) else {"MultiHeadSelfAttention": AffineFake(heads=HEADS)}
    one, two = (student.build("VisionTransformer", depth=depth, replace=places, **sizes) for depth in (1, 2))
    initial, moved = one.weights(), two.randomize()
    images, tokens = student.tensor(2, CHANNELS, SIDE, SIDE), PATCHES + 1

    def shown(model=two):
        found = model.call("attention", images, training=False).returned.tensor()
        if tuple(found.shape) == (2, tokens, tokens):
            raise Mismatch("attention gives one matrix for each image; it should give one for each head.")
        if tuple(found.shape) != (2, HEADS, tokens, tokens):
            raise Mismatch(
                f"attention gives a tensor of the shape {tuple(found.shape)}; it should be "
                f"{(2, HEADS, tokens, tokens)}: (batch, heads, tokens, tokens)."
            )
        return found

    before = shown()
    if not same(before.sum(dim=-1), torch.ones(before.shape[:-1]), tolerance=1e-3):
        raise Mismatch("The rows of what attention gives do not sum to 1: each should be a softmax.")
    first, second = block_weights(initial, moved)
    own = set(second)  # the second block's, of which it may be half where the blocks' are stacked
    is_replaced = any(call.component == "MultiHeadSelfAttention" for call, _ in two.calls)
    if is_replaced:  # the fake's weights are alike; which block's it is tells which block is shown
        if two.calls[-1][0].instance != 1:
            raise reference.named("vit_attention_of_the_first_block")
    else:
        two.set_weights(
            {
                name: torch.cat([first[name], value + student.tensor(*value.shape)])
                if name in first
                else value + student.tensor(*value.shape)
                for name, value in second.items()
            }
        )
        if same(shown(), before):
            raise reference.named("vit_attention_of_the_first_block")
    # where the last block has a name of its own, it is the other block whose names a model of one block lacks
    mlps = [
        [name for name in names if moved[name].numel() == WIDE * DIM**2] for names in (own, {*moved} - own)
    ]
    if all(mlps) and not is_replaced:
        changed = []
        for names in mlps:
            two.set_weights({**moved, **{name: moved[name].flip(0) for name in names}})
            changed.append(not same(shown(), before))
        if all(changed):
            raise reference.named("vit_attention_after_the_last_block")
    # norms of the last block without effect: what its attention then sees depends on no token
    alike = torch.full((2, HEADS, tokens, tokens), 1 / tokens)
    for names in (own, set(moved) - own):
        flat = {name: moved[name] * 0 for name in names if moved[name].numel() in (DIM, 2 * DIM)}
        two.set_weights({**moved, **flat})
        if is_replaced:
            shown()
            [*_, seen] = two.inputs_of("MultiHeadSelfAttention")
            if same(seen, seen[:, :1].expand_as(seen), tolerance=1e-3):
                return
        elif same(shown(), alike, tolerance=1e-3):
            return
    raise reference.named("vit_attention_not_normalized")


WIDE = 5.0  # how many times wider than a token an MLP is


def _shows_shares(student):
    """Whether MultiHeadSelfAttention by itself returns weights that are shares, for each head.

    If not, that costs its own points, and the model is judged with a fake in its place.
    """
    x = student.tensor(2, PATCHES + 1, DIM)

    def weights():
        component = student.build("MultiHeadSelfAttention", DIM, HEADS)
        both = component.call("", x, return_weights=True, training=False).returned
        return both.items(2)[1].tensor(2, HEADS, PATCHES + 1, PATCHES + 1)

    found = student.attempted(weights)
    return found is not None and same(found.sum(dim=-1), torch.ones(found.shape[:-1]), tolerance=1e-3)
