# >>> ONLY full
"""Public checks of BasicBlock and ResNet18."""

import pytest
import torch

from grader.kit import Fake, Mismatch, named, quoted, same
from grader.kit.convolutions import batch_norms, convolutions

BLOCK, SHAPE = (6, 6, 1), (2, 6, 8, 8)  # a BasicBlock whose shortcut is the identity, and its images


def residual_block(student, *sizes):
    """A BasicBlock with weights and running statistics that are not those of the beginning."""
    block = student.build("BasicBlock", *sizes).randomized()
    statistics = {}
    for norm in batch_norms(block.weights()):
        if norm.mean is not None and norm.variance is not None:
            statistics |= norm.named(
                mean=student.tensor(len(norm.mean)), variance=1 + student.tensor(len(norm.mean)) ** 2
            )
    block.set_weights(statistics)
    return block


@pytest.mark.component("BasicBlock")
@pytest.mark.weight(0.25)
def test_residual_block_has_its_shape(student):
    """BasicBlock gives (batch, channels, height / stride, width / stride), whatever its sizes."""
    for ins, outs, stride in ((4, 6, 2), (5, 5, 1), (5, 8, 1), (6, 6, 2)):
        block = student.build("BasicBlock", ins, outs, stride)
        try:
            block(student.tensor(2, ins, 8, 8), shape=(2, outs, 8 // stride, 8 // stride))
        except Mismatch as error:
            if ins != outs or stride == 1 or "The size of tensor" not in error.message:
                raise
            raise Mismatch(
                f"BasicBlock({ins}, {outs}, stride={stride}) cannot add its convolutions and its shortcut, "
                "because their sizes differ. With a stride, sizes change even where the "
                "number of channels does not.",
                hint="The shortcut is a convolution where stride != 1 or in_channels != channels.",
                look_for="in_channels != channels | channels != in_channels | in_channels == channels | "
                "channels == in_channels",
            ) from None


@pytest.mark.component("BasicBlock")
@pytest.mark.because("residual_block_has_its_shape")
@pytest.mark.weight(0.25)
def test_residual_block_ends_with_a_relu(student):
    """The ReLU follows the sum: what the block returns is never negative."""
    found = residual_block(student, *BLOCK)(2 * student.tensor(4, 6, 8, 8))
    negative = float((found < 0).float().mean())
    if negative > 0:
        raise Mismatch(
            f"{negative:.0%} of the numbers that the block returns are negative: no ReLU follows the sum.",
            hint="relu(branch + shortcut): the sum first, then the ReLU.",
            look_for="return",
        )


@pytest.mark.component("BasicBlock")
@pytest.mark.because("residual_block_has_its_shape", "residual_block_ends_with_a_relu")
@pytest.mark.weight(0.25)
def test_residual_block_has_a_shortcut(student):
    """Something goes around the convolutions: where their branch gives 0, the block returns relu(x)."""
    block = student.build("BasicBlock", *BLOCK)
    weights, x = block.weights(), student.tensor(2, 6, 8, 8)
    block.set_weights({p.name: 0 * weights[p.name] for p in block.parameters if p.trainable})
    found = block(x, shape=(2, 6, 8, 8))
    if same(found, x.clamp(min=0)):
        return
    if float(found.abs().max()) < 1e-6:
        raise Mismatch(
            "With all weights 0 the block returns 0; it should return relu(x): the shortcut is missing.",
            hint="relu(branch + shortcut), where the shortcut is x itself if the shape stays the same.",
            look_for="return",
        )
    raise Mismatch(
        "With all weights 0, the block does not return relu(x): its shortcut should be the identity where "
        "the shape stays the same.",
        hint="nn.Identity() or nn.Sequential() for stride=1 and as many channels as before.",
    )


@pytest.mark.component("BasicBlock")
@pytest.mark.because("residual_block_has_its_shape", "residual_block_has_a_shortcut")
@pytest.mark.weight(0.25)
def test_residual_block_has_a_norm_for_each_convolution(student):
    """Batch normalization follows each convolution, that of the shortcut too, and all of it is used."""
    block = student.build("BasicBlock", 4, 6, 2)
    initial, trainable = block.weights(), [each.name for each in block.parameters if each.trainable]
    weights = block.randomized().weights()
    layers, norms = convolutions(weights), batch_norms(weights, initial=initial, trainable=trainable)
    x = student.tensor(4, 4, 8, 8)
    if len(layers) == 3 and len(norms) < 3 and (norms or same(block(x), block(x, train=True))):
        raise Mismatch(
            f"BasicBlock(4, 6, stride=2) has 3 convolutions and {len(norms)} batch normalizations.",
            hint="One nn.BatchNorm2d(channels) after each convolution, that of the shortcut too.",
            look_for="Conv2d(_, _, 1) | Conv2d(_, _, kernel_size=1)",
        )
    if any(norm.mean is None for norm in norms) and not same(block(x)[:1], block(x[:1]), tolerance=1e-3):
        raise Mismatch(
            "In evaluation, what an image gives depends on the other images of its batch: a norm keeps no "
            "running statistics.",
            hint="nn.BatchNorm2d(channels) keeps them.",
            look_for="BatchNorm2d(_, track_running_stats=False)",
        )
    found = block.gradients(x, student.tensor(4, 6, 4, 4), train=True)
    if found.missing:
        raise Mismatch(
            f"{named(found.missing[0])} gets no gradient: it is not used.",
            hint="branch: convolution, norm, ReLU, convolution, norm.",
            look_for="conv2()",
        )


def with_open_end(student):
    """A BasicBlock whose last norm has such a large bias that the last ReLU does nothing, or None."""
    block = residual_block(student, *BLOCK)
    x = student.tensor(*SHAPE)
    for norm in reversed(batch_norms(block.weights())):
        if norm.bias is None:
            continue
        outputs = []
        for shift in (200.0, 210.0):
            block.set_weights(norm.named(bias=torch.full_like(norm.bias, shift)))
            outputs.append(block(x, shape=SHAPE))
        if outputs[0].min() > 0 and same(outputs[1] - outputs[0], torch.full_like(outputs[0], 10.0)):
            return block
        block.set_weights(norm.named(bias=norm.bias))
    return None


@pytest.mark.component("BasicBlock")
@pytest.mark.because("residual_block_ends_with_a_relu", "residual_block_has_a_norm_for_each_convolution")
@pytest.mark.weight(0.25)
def test_residual_block_has_a_relu_inside(student):
    """A ReLU stands between the two convolutions."""
    block = with_open_end(student)
    if block is None:
        return
    x = student.tensor(*SHAPE)
    one, other, zero = (block(each, shape=SHAPE) for each in (x, -x, 0 * x))
    if min(each.min() for each in (one, other, zero)) > 0 and same(one - zero, zero - other, tolerance=1e-3):
        raise Mismatch(
            "Before the last ReLU the block is linear: none stands between its two convolutions.",
            hint="branch: convolution, norm, ReLU, convolution, norm.",
            look_for="conv2() | bn2()",
        )


@pytest.mark.component("BasicBlock")
@pytest.mark.because("residual_block_has_its_shape", "residual_block_has_a_norm_for_each_convolution")
@pytest.mark.weight(0.25)
def test_residual_block_strides_first(student):
    """The first convolution has the stride: with stride=2, an output sees 7 x 7 pixels of the input."""
    block, size = residual_block(student, 4, 6, 2), 16
    x, cotangent = 2 * student.tensor(8, 4, size, size), torch.zeros(8, 6, size // 2, size // 2)
    cotangent[:, :, 4, 4] = 1 + student.tensor(8, 6).abs()
    found = block.gradients(x, cotangent)
    if found.input is None:
        return
    seen = found.input.abs().amax(dim=(0, 1)) > 0
    rows, columns = (int(seen.any(dim=axis).sum()) for axis in (1, 0))
    if (rows, columns) == (5, 5):
        raise Mismatch(
            "With stride=2 an output sees 5 x 5 pixels of the input: the second convolution has the stride.",
            hint="The stride is the first convolution's, and that of the shortcut's; then it sees 7 x 7.",
            look_for="Conv2d(channels, channels, 3), stride",
        )


RES_WIDTH, SCORES = 4, 5
CHANNELS_OF = [4, 4, 8, 8, 16, 16, 32, 32]
SIDES_OF = [32, 32, 16, 16, 8, 8, 4, 4]


class ResNetAround:
    """The ResNet around fakes of its blocks that give known answers.

    Attributes:
        network: None where it does not use BasicBlock: what stands inline is looked at when it is graded.
        made: What the blocks were made with.
    """

    def __init__(self, student, last=None):
        answers = [
            student.tensor(2, channels, side, side)
            for channels, side in zip(CHANNELS_OF, SIDES_OF, strict=True)
        ]
        answers[-1] = answers[-1] if last is None else last
        self.network = student.build(
            "ResNet18", SCORES, RES_WIDTH, replace={"BasicBlock": Fake.script(answers)}
        )
        self.made = self.network.constructions("BasicBlock")
        if not self.made:
            self.network = None

    def outcome(self, images):
        """What a call gives, in evaluation mode."""
        return self.network.call("", images, training=False)


@pytest.mark.component("ResNet18")
@pytest.mark.weight(0.25)
def test_resnet_gives_scores(student):
    """An image becomes a score for every class."""
    student.build("ResNet18", 5, 4)(student.tensor(2, 3, 32, 32), shape=(2, 5))


@pytest.mark.component("ResNet18")
@pytest.mark.weight(0.25)
def test_resnet_has_four_groups_of_two(student):
    """Four groups of two blocks; from group to group twice the channels, and a stride of 2."""
    around = ResNetAround(student)
    if around.network is None:
        return
    channels = [given.get("channels") for given in around.made]
    strides = [given.get("stride", 1) for given in around.made]
    if None in channels or None in strides:
        return

    def told(value):
        return str(value) if type(value) is int else quoted(str(value))

    whole, one = (
        [layer.kernel for layer in convolutions(student.build(*sizes).weights())].count((3, 3))
        for sizes in (("ResNet18", SCORES, RES_WIDTH), ("BasicBlock", RES_WIDTH, RES_WIDTH))
    )
    count = min(len(channels), whole // one) if one else len(channels)  # some are made and not used
    if count != 8:
        raise Mismatch(
            f"ResNet18 has {count} blocks; there should be 8, two in each of four groups.",
            hint="It has 16 convolutions in its blocks, one in its stem, and a linear layer.",
            look_for="BasicBlock(), for",
        )
    if channels != CHANNELS_OF:
        raise Mismatch(
            f"With width={RES_WIDTH}, the blocks have {', '.join(map(told, channels))} channels; they should "
            f"have {', '.join(map(str, CHANNELS_OF))}.",
            hint="width for the first group, and twice as many for each further one.",
            look_for="BasicBlock()",
        )
    wrong = [group for group in range(4) if strides[2 * group : 2 * group + 2] != [1 + (group > 0), 1]]
    if len(wrong) == 1 and wrong[0]:
        group, (first, second) = wrong[0], strides[2 * wrong[0] : 2 * wrong[0] + 2]
        ins, outs = (
            "width" if factor == 1 else f"{factor} * width" for factor in (2 ** (group - 1), 2**group)
        )
        raise Mismatch(
            f"Group {group + 1} of the blocks does not halve height and width: its first block has stride "
            f"{told(first)}, not 2."
            if first != 2
            else f"Group {group + 1} of the blocks halves height and width twice: its second block has "
            f"stride {told(second)}, not 1.",
            hint="The first block of this group has stride 2, as in the groups beside it."
            if first != 2
            else "The second block of each group has stride 1.",
            look_for=f"_({ins}, {outs})",
        )
    if wrong:
        raise Mismatch(
            f"The blocks have the strides {', '.join(map(told, strides))}; the first block of each group but "
            "the first one should have 2, and all others 1.",
            hint="Each further group halves height and width.",
            look_for="BasicBlock()",
        )


@pytest.mark.component("ResNet18")
@pytest.mark.because("resnet_has_four_groups_of_two")
@pytest.mark.weight(0.25)
def test_resnet_has_a_small_stem(student):
    """The stem keeps height and width: a 3 x 3 convolution, a norm and a ReLU, and nothing is pooled."""
    around = ResNetAround(student)
    if around.network is None:
        return
    around.network.randomize()
    images = student.tensor(2, 3, 32, 32)
    calls = around.outcome(images).calls_of("BasicBlock")
    if not calls:
        return
    seen = torch.as_tensor(calls[0].args[0] if calls[0].args else next(iter(calls[0].kwargs.values())))
    kernels = [layer.kernel for layer in convolutions(around.network.weights())]
    if (7, 7) in kernels:
        raise Mismatch(
            "The stem has a convolution of 7 x 7, as for large images.",
            hint="nn.Conv2d(3, width, 3, padding=1, bias=False)",
            look_for="Conv2d(_, _, 7) | Conv2d(_, _, kernel_size=7)",
        )
    if tuple(seen.shape[2:]) != (32, 32):
        raise Mismatch(
            f"The first block gets {seen.shape[2]} x {seen.shape[3]} of images of 32 x 32.",
            hint="The stem keeps height and width: no stride, and no pooling before the end.",
            look_for="MaxPool2d() | max_pool2d(), Conv2d(3, _)",
        )
    stem = convolutions(around.network.weights())
    if len(stem) != 1:
        return
    if stem[0].kernel != (3, 3):
        sides = " x ".join(map(str, stem[0].kernel))
        raise Mismatch(
            f"The convolution of the stem is one of {sides}; it should be one of 3 x 3.",
            hint="nn.Conv2d(3, width, 3, padding=1, bias=False)",
            look_for="Conv2d(3, _)",
        )
    y = stem[0](images)
    if same(seen, y, tolerance=1e-3) or same(seen, y.clamp(min=0), tolerance=1e-3):
        raise Mismatch(
            "No batch normalization follows the convolution of the stem.",
            hint="stem: convolution, norm, ReLU.",
            look_for="Conv2d(3, _)",
        )
    if float(seen.min()) < 0:
        raise Mismatch(
            "The first block gets negative numbers: no ReLU follows the norm of the stem.",
            hint="stem: convolution, norm, ReLU.",
            look_for="Conv2d(3, _)",
        )


@pytest.mark.component("ResNet18")
@pytest.mark.because("resnet_has_four_groups_of_two", "resnet_has_a_small_stem")
@pytest.mark.weight(0.25)
def test_resnet_classifies_the_mean(student):
    """The mean over the image is classified: how it is spread changes nothing."""
    flat = 1 + student.tensor(2, 32, 1, 1).repeat(1, 1, 4, 4)
    spread = flat.clone()
    spread[:, :, 0, 0] += 3
    spread[:, :, 2, 3] -= 3
    images, scores, held = student.tensor(2, 3, 32, 32), [], None
    for last in (flat, spread):
        around = ResNetAround(student, last)
        if around.network is None:
            return
        held = held or around.network.weights()
        around.network.set_weights(held)
        scores.append(around.outcome(images).returned.tensor(2, SCORES))
    if not same(*scores, tolerance=1e-3):
        raise Mismatch(
            "Where the last block gives other numbers with the same mean over the image, the scores are "
            "others.",
            hint="x.mean(dim=(2, 3)), and the linear layer of that.",
            look_for="amax() | max() | adaptive_max_pool2d() | AdaptiveMaxPool2d() | MaxPool2d(), flatten()",
        )


# <<< ONLY
