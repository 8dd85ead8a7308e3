"""BasicBlock and ResNet18: by readings of their convolutions and norms."""

import itertools
from functools import partial

import pytest
import torch
import torch.nn.functional as F

from grader.kit import Fake, Mismatch, Undecided, named, same
from grader.kit.convolutions import batch_norms, convolutions, shortcut
from grader.kit.transformers import linear_layers

BLOCKS = [(5, 5, 1), (5, 8, 1), (5, 10, 2), (6, 6, 2)]
SIZE = 8  # of what goes into them


def larger(student, oracle):
    """(channels in, channels out, stride, side) of a block as in a training, drawn for each submission."""
    width = oracle.drawn(student, 8, 12, 16, 20, 24, 32, 48, 64)
    ways = ((width, width, 1), (width, 2 * width, 2))
    return (*oracle.drawn(student, *ways), oracle.drawn(student, 8, 16, 32))


def with_norms(block):
    """Move a block's weights and statistics; the function that reads its norms, also those of its own."""
    initial, trainable = block.weights(), [each.name for each in block.parameters if each.trainable]
    read = partial(batch_norms, initial=initial, trainable=trainable)
    block.randomize()
    return read


def require_none(block, x):
    """Check that a block whose norms cannot be read has none: it computes the same in training.

    Raises:
        Mismatch: It computes something else each time, as no norm does.
        Undecided: It computes the same each time, and not what it computes in evaluation.
    """
    if not same(*block.repeated(x, times=2, train=True), tolerance=1e-3):
        raise Mismatch(
            "There is no batch normalization in BasicBlock: one follows each convolution. In training, the "
            "block gives something else each time, as a dropout does.",
        )
    if not same(block(x, train=True), block(x), tolerance=1e-3):
        raise Undecided("BasicBlock normalizes in training, by weights that could not be told apart.")


def computed(x, weights, stride, norms, epsilons, train=False):
    """What a block can give, whichever kernel is the first and whichever norm follows it.

    In which order they are registered is up to the student; the usual one comes first.
    """
    layers = convolutions(weights)
    large = [layer for layer in layers if layer.kernel == (3, 3)]
    small = [layer for layer in layers if layer.kernel == (1, 1)]
    if len(layers) != len(norms) or len(large) != 2 or len(small) > 1:
        return
    if not train and any(norm.mean is None or norm.variance is None for norm in norms):
        return
    beside = dict(zip((layer.name for layer in layers), norms, strict=True))
    usual = [beside[layer.name] for layer in (*large, *small)]
    orders = list(itertools.permutations(usual))
    ways = itertools.product(epsilons, orders, (large, large[::-1]))
    for eps, (norm_one, norm_two, *norm_around), (one, two) in ways:
        if one.weight.shape[1] != x.shape[1] or two.weight.shape[1] != one.weight.shape[0]:
            continue
        y = F.relu(norm_one(one(x, stride=stride), train=train, eps=eps))
        y = norm_two(two(y), train=train, eps=eps)
        around = x
        for layer, norm in zip(small, norm_around, strict=True):
            around = norm(layer(x, stride=stride, padding=0), train=train, eps=eps)
        if y.shape == around.shape:
            yield F.relu(y + around)


@pytest.mark.explains(
    "residual_block_has_its_shape",
    "residual_block_ends_with_a_relu",
    "residual_block_has_a_shortcut",
    "residual_block_has_a_norm_for_each_convolution",
    "residual_block_has_a_relu_inside",
    "residual_block_strides_first",
)
@pytest.mark.component("BasicBlock")
@pytest.mark.weight(5)
@pytest.mark.parametrize(("ins", "outs", "stride"), [*BLOCKS, pytest.param(0, 0, 0, id="large")])
def test_block_is_a_residual_block(student, reference, ins, outs, stride):
    """relu(bn(conv(relu(bn(conv(x))))) + shortcut(x)), with running statistics in evaluation."""
    side = SIZE
    if not ins:
        ins, outs, stride, side = larger(student, reference.oracle)
    x = 1 + student.tensor(3, ins, side, side)
    block = student.build("BasicBlock", ins, outs, stride)
    norms = with_norms(block)
    statistics = {}
    for norm in norms(block.weights()):
        if norm.mean is None or norm.variance is None:
            if not same(block(x)[:1], block(x[:1]), tolerance=1e-3):
                raise reference.named("block_without_running_statistics")
            continue
        statistics |= norm.named(
            mean=student.tensor(len(norm.mean)), variance=1 + student.tensor(len(norm.mean)) ** 2
        )
    block.set_weights(statistics)
    weights = block.weights()
    if ins == outs and stride > 1 and not any(layer.kernel == (1, 1) for layer in convolutions(weights)):
        raise reference.named("block_shortcut_by_channels_only")
    found = block.call("", x, training=False).returned.tensor()
    expected = computed(x, weights, stride, norms(weights), reference.oracle.EPSILONS)
    if any(same(found, each, tolerance=1e-3) for each in expected):
        return
    shape = (3, outs, side // stride, side // stride)
    if tuple(found.shape) != shape:
        raise Mismatch(
            f"BasicBlock({ins}, {outs}, stride={stride}) makes {tuple(found.shape)} of {tuple(x.shape)}; "
            f"it should be {shape}."
        )
    for mistake in reference.mistakes_of("BasicBlock"):
        module = reference.oracle.transplanted(reference.wrong(mistake, ins, outs, stride), block)
        if module is not None:
            with torch.no_grad():
                wrong = reference.oracle.attempted(module, x)
            if wrong is not None and same(found, wrong, tolerance=1e-3):
                raise reference.named(mistake.id)
    if not norms(weights):
        require_none(block, x)
        raise Mismatch("There is no batch normalization in BasicBlock: one follows each convolution.")
    around = shortcut(block, x, norms(weights))
    if around.kind == "none":
        raise reference.named("block_without_shortcut")
    raise Mismatch("BasicBlock does not compute relu(bn(conv(relu(bn(conv(x))))) + shortcut(x)).")


@pytest.mark.component("BasicBlock")
@pytest.mark.weight(1)
@pytest.mark.because("block_is_a_residual_block")
def test_block_normalizes_by_the_batch_in_training(student, reference):
    """In training, the norms use the batch, and move their running statistics."""
    x = 1 + student.tensor(6, 5, 8, 8)
    block = student.build("BasicBlock", 5, 10, 2)
    norms = with_norms(block)
    weights = block.weights()
    found = block(x, train=True)
    if not norms(weights):
        require_none(block, x)
    expected = computed(x, weights, 2, norms(weights), reference.oracle.EPSILONS, train=True)
    if not any(same(found, each, tolerance=1e-3) for each in expected):
        raise Mismatch("In training mode, the block does not normalize by the batch's own mean and variance.")


WIDTH, CLASSES = 4, 5
LARGE_KERNELS = 17  # of 3 x 3: in the stem, and two in each block
STRIDES = [1, 1, 2, 1, 2, 1, 2, 1]
SIDES = [32 // 2**group for group in range(4) for _ in range(2)]


def channels_of(width):
    """Of the eight blocks of a ResNet."""
    return [width * 2**group for group in range(4) for _ in range(2)]


def all_sizes(student, oracle):
    """(classes, width) of a small network, and of one as in a training."""
    return (CLASSES, WIDTH), (10, oracle.drawn(student, 8, 12, 16, 24, 32, 64))


def with_fakes(student, classes, width):
    """(network, answers, what reads its norms) of a ResNet around eight blocks whose answers are known."""
    answers = [
        student.tensor(2, channels, side, side)
        for channels, side in zip(channels_of(width), SIDES, strict=True)
    ]
    network = student.build("ResNet18", classes, width, replace={"BasicBlock": Fake.script(answers)})
    return network, answers, with_norms(network)


@pytest.mark.explains("resnet_has_four_groups_of_two")
@pytest.mark.component("ResNet18")
@pytest.mark.weight(3)
def test_resnet_has_eight_blocks(student, reference):
    """Four groups of two blocks; from group to group twice the channels, and half the side."""
    for classes, width in all_sizes(student, reference.oracle):
        require_blocks(student, reference, classes, width)


def require_blocks(student, reference, classes, width):
    """The same in one size."""
    network, *_ = with_fakes(student, classes, width)
    made, expected = network.constructions("BasicBlock"), channels_of(width)
    told = reference.oracle.told
    if not made:  # its blocks are written in some other way: the kernels tell them
        whole(student, reference, classes, width)
        return
    whole_network, one = (
        [layer.kernel for layer in convolutions(student.build(*sizes).weights())].count((3, 3))
        for sizes in (("ResNet18", classes, width), ("BasicBlock", width, width))
    )
    if len(made) == 4 or (one and whole_network == 1 + 4 * one):  # some may be made and not used
        raise reference.named("resnet_four_blocks")
    if len(made) != 8:
        raise Mismatch(f"ResNet18 has {len(made)} blocks; there should be 8: two in each of four groups.")
    channels = [given.get("channels") for given in made]
    if channels != expected:
        if channels == [2 * each for each in expected]:
            raise reference.named("resnet_width_ignored")
        raise Mismatch(
            f"With width={width}, the blocks have {told(channels)} channels; they should have {expected}."
        )
    strides = [given.get("stride", 1) for given in made]
    if strides != STRIDES:
        if max(strides) == 1:
            raise reference.named("resnet_never_strides")
        if strides == [1, 1, 2, 2, 2, 2, 2, 2]:
            raise reference.named("resnet_strides_in_both_blocks")
        raise Mismatch(f"The blocks have the strides {told(strides)}; they should be {STRIDES}.")
    into = [given.get("in_channels") for given in made]
    if into != [width, *expected[:-1]]:
        raise Mismatch(f"The blocks get {told(into)} channels; they should get {[width, *expected[:-1]]}.")
    images = student.tensor(2, 3, 32, 32)
    outcome = student.attempted(lambda: network.call("", images, training=False))
    if outcome is not None and not outcome.calls_of("BasicBlock"):  # they are made, and others are used
        whole(student, reference, classes, width)


@pytest.mark.explains("resnet_has_a_small_stem", "resnet_classifies_the_mean")
@pytest.mark.component("ResNet18")
@pytest.mark.weight(3)
@pytest.mark.because("resnet_has_eight_blocks")
def test_resnet_goes_from_its_stem_to_the_mean(student, reference):
    """The stem keeps height and width, the blocks follow each other, and their mean is classified."""
    for classes, width in all_sizes(student, reference.oracle):
        require_stem_and_mean(student, reference, classes, width)


def require_stem_and_mean(student, reference, classes, width):
    """The same in one size."""
    network, answers, norms = with_fakes(student, classes, width)
    for norm in norms(network.weights()):
        if norm.mean is not None and norm.variance is not None:
            statistics = student.tensor(2, len(norm.mean))
            network.set_weights(norm.named(mean=statistics[0], variance=1 + statistics[1] ** 2))
    images = student.tensor(2, 3, 32, 32)
    outcome = network.call("", images, training=False)
    calls = outcome.calls_of("BasicBlock")
    if not calls:
        whole(student, reference, classes, width)
        return
    seen = [
        torch.as_tensor(call.args[0] if call.args else next(iter(call.kwargs.values()))) for call in calls
    ]
    if len(calls) != 8:
        raise Mismatch(f"ResNet18 calls {len(calls)} blocks; it should call 8.")
    if tuple(seen[0].shape) != (2, width, 32, 32):
        kernels = [layer.kernel for layer in convolutions(network.weights())]
        if (7, 7) in kernels:
            raise reference.named("resnet_stem_of_large_images")
        stem = reference.ResNet18(classes, width).stem
        pooled = bool((seen[0] >= 0).all()) and float((seen[0] > 0).float().mean()) > 0.6
        if tuple(seen[0].shape) == (2, width, 16, 16):
            raise reference.named("resnet_pools_after_its_stem" if pooled else "resnet_stem_strides")
        raise Mismatch(
            f"The first block gets {tuple(seen[0].shape)} of images of 32 x 32; it should be "
            f"{(2, width, 32, 32)}: {len(stem)} layers that keep height and width."
        )
    require_stem(reference, network, images, seen[0], norms(network.weights()))
    for number, (given, answer) in enumerate(zip(seen[1:], answers[:-1], strict=True), start=2):
        if not same(given, answer):
            raise Mismatch(f"What block {number} gets is not what the block before it gave.")
    found, weights = outcome.returned.tensor(2, classes), network.weights()
    heads = list(linear_layers(weights, channels_of(width)[-1], classes))
    if not heads:
        raise Mismatch(
            f"There is no linear layer from {channels_of(width)[-1]} channels to {classes} scores."
        )

    def are_of(pooled):
        return any(same(found, F.linear(pooled, *head), tolerance=1e-3) for head in heads)

    if are_of(answers[-1].mean(dim=(2, 3))):
        return
    if are_of(answers[-1].amax(dim=(2, 3))):
        raise reference.named("resnet_takes_the_maximum")
    raise Mismatch(
        "The scores are not the linear layer of the mean over the image of what the last block gives."
    )


def require_stem(reference, network, images, found, norms):
    """Check that what the first block gets is relu(bn(conv(images))), apart from the edges.

    Raises:
        Mismatch: It is something else.
        Undecided: The weights of the stem cannot be told.
    """
    layers = convolutions(network.weights())
    stems = [layer for layer in layers if layer.kernel == (3, 3) and layer.weight.shape[1] == 3]
    if len(layers) == 1 and not stems:
        sides = " x ".join(map(str, layers[0].kernel))
        raise Mismatch(f"The convolution of the stem is one of {sides}; it should be one of 3 x 3.")

    def is_given(expected):
        inner = (..., slice(1, -1), slice(1, -1))
        return expected.shape == found.shape and same(found[inner], expected[inner], tolerance=1e-3)

    for layer in stems:
        y = layer(images)
        fitting = [n for n in norms if n.mean is not None and len(n.mean) == y.shape[1]]
        normalized = [norm(y, eps=eps) for norm in fitting for eps in reference.oracle.EPSILONS]
        if any(is_given(F.relu(each)) for each in normalized):
            return
        if any(map(is_given, normalized)):
            raise reference.named("resnet_stem_without_relu")
        if is_given(y) or is_given(F.relu(y)):
            raise reference.named("resnet_stem_without_norm")
    if len(layers) == 1 and not norms:
        trained = network.call("", images, training=True).calls_of("BasicBlock")[0]
        if same(torch.as_tensor((*trained.args, *trained.kwargs.values())[0]), found):
            raise reference.named("resnet_stem_without_norm")
    if len(layers) == len(norms) == 1:
        raise Mismatch(
            "What the first block gets is not relu(bn(conv(images))), with the weights of the stem."
        )
    raise Undecided("The stem is not one convolution and one norm, so a person has to look.")


def whole(student, reference, classes, width):
    """Judge a ResNet as a whole, by its kernels: where it does not use BasicBlock.

    Raises:
        Mismatch: It computes something else than the template's ResNet with its kernels, or is too small for
            one.
        Undecided: Its kernels are others.
    """
    network = student.build("ResNet18", classes, width)
    network.randomize()
    # norms without effect, and no biases: then the kernels alone decide, whatever they are called
    plain = {}
    for norm in batch_norms(network.weights()):
        [count] = {len(each) for each in (norm.gain, norm.bias, norm.mean) if each is not None}
        ones, zeros = torch.ones(count), torch.zeros(count)
        plain |= norm.named(gain=ones, bias=zeros, mean=zeros, variance=ones)
    weights = network.weights()
    for layer in convolutions(weights):
        if layer.bias is not None:
            plain |= {name: value * 0 for name, value in weights.items() if value is layer.bias}
    network.set_weights(plain)
    weights, x = network.weights(), student.tensor(2, 3, 32, 32)
    found = network(x, shape=(2, classes))
    right = reference.oracle.with_kernels(reference.ResNet18(classes, width), weights)
    if right is None:
        complete = reference.ResNet18(classes, width)
        kernels = sum(layer.kernel == (3, 3) for layer in convolutions(weights))
        own, whole_count = network.parameter_count, sum(p.numel() for p in complete.parameters())
        if kernels < LARGE_KERNELS and own < 0.9 * whole_count:
            raise Mismatch(
                f"ResNet18({classes}, width={width}) has {kernels} convolutions of 3 x 3 and {own} "
                f"parameters; there should be {LARGE_KERNELS} of them, and {whole_count} parameters.",
                hint="A stem, and four groups of two BasicBlocks with two convolutions each.",
            )
        raise Undecided("The kernels are not the template's, so a person has to look.")
    with torch.no_grad():
        if not same(found, right(x), tolerance=1e-3):
            raise Mismatch(
                "With its own kernels, the ResNet gives different scores from those that the template's "
                "would give."
            )


@pytest.mark.component("ResNet18")
@pytest.mark.weight(1)
def test_resnet_takes_any_image(student, reference):
    """The mean over the image makes other sizes fit, and all parameters learn."""
    network = student.build("ResNet18", 5, 4)
    network(student.tensor(2, 3, 16, 16), shape=(2, 5))
    found = network.gradients(student.tensor(2, 3, 16, 16), student.tensor(2, 5), train=True)
    if found.missing:
        raise Mismatch(
            f"The parameter {named(found.missing[0])} receives no gradient: it is not used, or cut off."
        )
