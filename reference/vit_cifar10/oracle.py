"""What several checks need: sizes, readings, and what each mistake would give in a student's place."""

import re

import numpy as np
import torch
import torch.nn.functional as F

from grader.kit import (
    Mismatch,
    Undecided,
    batches,
    image_batches,
    image_numbers,
    measured_by_epochs,
    numbered_images,
    quoted,
    same,
)
from grader.kit.transformers import activations, squeezed, two_layers

SIDE, PATCH, CHANNELS, WIDTH = 12, 4, 2, 7  # of the patches
DIM, HEADS = 22, 2
RATES, RATE_CALLS = (0.25, 0.75), 300  # of dropout, and how often it is looked at: for a share within 0.12
STEP, DIRECTIONS = 1e-3, 6  # of differences that are compared with a gradient: small, for units of a ReLU
IMAGES = {"image_size": 32, "in_channels": 3, "num_classes": 10}


def name(reference, part, found, result, agree=same):
    """Raise the known mistake of a part that gives what was found.

    Args:
        result: What the mistake's class or function gives in the same place.
    """
    for mistake in reference.mistakes_of(part):
        try:
            expected = result(mistake.namespace[part])
        except Exception:  # noqa: BLE001 - this mistake cannot be made here
            continue
        if agree(found, expected):
            raise reference.named(mistake.id)


def told(value):
    """A student's value in a sentence: numbers as they are, anything else quoted and shortened."""
    if isinstance(value, list):
        return f"[{', '.join(map(told, value[:12]))}]"
    return repr(value) if type(value) in (int, float, bool) else quoted(str(value))


def numbers(value, *shape):
    """What a student gives as an array, whole numbers or not."""
    try:
        return value.array(*shape, whole=True)
    except Mismatch:
        return value.array(*shape, finite=False)


# --- the sizes of the trained model -----------------------------------------------------------------------


def drawn(student, *choices):
    """One of these, drawn anew for each submission."""
    return choices[int(torch.randint(len(choices), (1,), generator=student.random))]


def own_sizes(student):
    """The sizes of the model that the submission trains, as far as it shows them; else drawn ones.

    Returns:
        `image_size`, `patch_size`, `in_channels`, `num_classes`, `dim` and `heads`.
    """
    return student.shared("own_sizes", lambda: _shown_sizes(student) or _drawn_sizes(student))


def _drawn_sizes(student):
    heads = drawn(student, 2, 4)
    dim = heads * drawn(student, 8, 12, 16)
    return {**IMAGES, "patch_size": drawn(student, 4, 8), "dim": dim, "heads": heads}


def _shown_sizes(student):
    """What the weights of the model that the top level makes tell of its sizes; None if it cannot be made.

    It is not called: a part must not fail because another one hangs.
    """
    try:
        model = student.configured_model()
        weights = model.weights()
    except Exception:  # noqa: BLE001 - what keeps the model from being made costs the model's own part
        return None
    dims = [value.shape[1] for value in weights.values() if value.shape[:1] == (10,) and value.ndim == 2]
    if not dims or not 4 <= dims[-1] <= 1024:
        return None
    dim = dims[-1]
    likely = sorted(weights, key=lambda name: "pos" not in name)  # the table of positions tells the patches
    counts = [weights[name].numel() // dim - extra for name in likely for extra in (0, 1)]
    patch = next((patch for count in counts for patch in (2, 4, 8, 16) if count == (32 // patch) ** 2), None)
    said = re.search(r"\bheads\s*=\s*(\d{1,3})\b", student.program.recipe.model or "")
    heads = [int(said[1])] if said else [8, 4, 2]
    heads = next((count for count in (*heads, 1) if count and dim % count == 0), 1)
    return {**IMAGES, "patch_size": patch or drawn(student, 4, 8), "dim": dim, "heads": heads}


# --- patches ----------------------------------------------------------------------------------------------


def operator(embed):
    """The map of images to tokens: of zeros, (tokens, dim), and its slopes, (pixels, tokens, dim)."""
    zeros = embed(torch.zeros(1, CHANNELS, SIDE, SIDE))[0]
    found = [
        embed(part.view(-1, CHANNELS, SIDE, SIDE)) - zeros for part in torch.eye(CHANNELS * SIDE**2).split(96)
    ]
    return zeros, torch.cat(found)


def seen(slopes):
    """Which token sees which pixel, bool (tokens, channels, height, width)."""
    strength = slopes.abs().amax(dim=-1)
    return (strength > 1e-5 * strength.max()).T.view(-1, CHANNELS, SIDE, SIDE)


def own_patches():
    """The same where each token sees its own patch, row by row."""
    places = torch.arange(SIDE) // PATCH
    number = places[:, None] * (SIDE // PATCH) + places
    tokens = torch.arange((SIDE // PATCH) ** 2)
    return (number == tokens[:, None, None])[:, None].expand(-1, CHANNELS, -1, -1)


def linear_tokens(embed, images, patch):
    """The tokens of images by the one linear map that patches go through, read from single pixels.

    Args:
        embed: (images, channels, side, side) -> (images, tokens, dim).
        images: For which it is asked, as for embed.
        patch: The side of a patch.

    Returns:
        (images, tokens, dim): what embed gives if it is such a map, whatever else it is.
    """
    channels, side = images.shape[1:3]
    pixels, count = channels * patch * patch, (side // patch) ** 2
    bias = embed(torch.zeros(1, channels, side, side))[0]
    # each patch of these images holds one of the pixels that a patch can hold, and nothing else
    single = torch.eye(pixels)[torch.arange(-(-pixels // count) * count) % pixels]
    shown = F.fold(single.view(-1, count, pixels).transpose(1, 2), side, patch, stride=patch)
    slopes = (embed(shown) - bias).flatten(0, 1)[:pixels]
    return F.unfold(images, patch, stride=patch).transpose(1, 2) @ slopes + bias


# --- gradients and dropout --------------------------------------------------------------------------------


def is_cut(student, component, x):
    """Whether the gradient by the input is another one than the slopes of what the component computes.

    detach() and no_grad() change nothing that is computed, and may leave every parameter some gradient.
    """
    cotangent = student.tensor(*x.shape)
    gradient = component.gradients(x, cotangent).input
    if gradient is None:
        return True
    size = float(gradient.norm())
    for _ in range(DIRECTIONS):
        step = STEP * student.tensor(*x.shape)
        ahead, behind = component(x + step), component(x - step)
        slope = float(((ahead - behind) * cotangent).sum()) / 2
        if abs(slope - float((gradient * step).sum())) > 0.03 * STEP * max(size, 1e-3):
            return True
    return False


def share_dropped(component, x, parts, times):
    """The share of a single token's weight that one head drops in training, and whether anything changes.

    Where there is one token, its weight is 1; where it is dropped, the last layer's bias is left.

    Args:
        component: An attention of one head, with dropout.
        x: (images, 1, dim).
        parts: The right reading of its weights.
        times: How often it is called.
    """
    bias = parts.out_bias.flatten()
    calls = list(component.repeated(x, times=times, train=True))
    rows = torch.stack([y.flatten(0, 1) for y in calls]).flatten(0, 1)
    shown = (rows != 0) * bias  # what the last layer gives may be dropped, too, and the rest made larger
    factor = (rows * shown).sum(dim=1, keepdim=True) / shown.pow(2).sum(dim=1, keepdim=True).clamp(min=1e-12)
    dropped = (rows - factor * shown).abs().amax(dim=1) < 1e-4 * rows.abs().max()
    return float(dropped.float().mean()), not all(same(y, calls[0]) for y in calls)


# --- attention --------------------------------------------------------------------------------------------


def weights_of(x, parts):
    """The attention weights of a reading, (batch, heads, tokens, tokens)."""
    q = torch.einsum("bnd,hfd->bhnf", x, parts.q) + parts.q_bias[:, None]
    k = torch.einsum("bnd,hfd->bhnf", x, parts.k) + parts.k_bias[:, None]
    return (q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5).softmax(dim=-1)


def filled(module, parts):
    """The solution's or a mistake's attention with the weights of a reading."""
    dim = module.out.in_features if hasattr(module, "out") else DIM
    with torch.no_grad():
        module.qkv.weight.copy_(torch.cat([parts.q, parts.k, parts.v]).reshape(3 * dim, dim))
        module.qkv.bias.copy_(torch.cat([parts.q_bias, parts.k_bias, parts.v_bias]).flatten())
        if hasattr(module, "out") and parts.out is not None:
            module.out.weight.copy_(parts.out.reshape(dim, dim))
            module.out.bias.copy_(parts.out_bias)
    return module.eval()


# --- block ------------------------------------------------------------------------------------------------


def mlps(weights, hidden, dim=DIM):
    """Name -> the perceptron among a block's weights at their beginning, when its norms change nothing.

    The names are those of the activations, and `none`; a dash behind one says that matrices are (in, out),
    as those that an input is multiplied with from the left.
    """
    weights = squeezed(weights)
    bias = sum((w for w in weights.values() if w.shape == (hidden,)), torch.zeros(hidden))
    vectors = [w for w in weights.values() if w.shape == (dim,) and not bool((w == 1).all())]
    last = sum(vectors, torch.zeros(dim))
    kinds = {**activations(), "none": lambda z: z}
    reads = list(two_layers(weights, dim, hidden))
    kept_as = {tuple(weights[each.first_name].shape): each for each in reversed(reads)}
    return {
        kind + dash: lambda x, act=act, read=kept_as[shape]: (
            act(x @ read.first.T + bias) @ read.second.T + last
        )
        for shape, dash in (((hidden, dim), ""), ((dim, hidden), "-"))
        if shape in kept_as
        for kind, act in kinds.items()
    }


EPSILONS = (1e-5, 1e-6, 1e-12, 1e-3)  # of norms: PyTorch's, and those of others


def block_results(x, attend, mlp, eps=EPSILONS[0]):
    """What a block gives: right, and by each of the mistakes."""
    norm = lambda z: F.layer_norm(z, z.shape[-1:], eps=eps)  # noqa: E731
    h = x + attend(norm(x))
    bare = attend(norm(x))
    after = norm(x + attend(x))
    return h + mlp(norm(h)), {
        "block_post_norm": norm(after + mlp(after)),
        "block_without_attention_residual": bare + mlp(norm(bare)),
        "block_without_mlp_residual": mlp(norm(h)),
        "block_mlp_not_normalized": h + mlp(h),
        "block_attention_not_normalized": (x + attend(x)) + mlp(norm(x + attend(x))),
        "block_parallel": h + mlp(norm(x)),
        "block_mlp_adds_to_normalized": norm(h) + mlp(norm(h)),
        "block_adds_normalized": (norm(x) + bare) + mlp(norm(norm(x) + bare)),
    }


# --- ResNet -----------------------------------------------------------------------------------------------


def transplanted(module, component):
    """The solution's or a mistake's module with a component's numbers, in the order in which they are
    registered; None where they do not fit.
    """
    weights, names = component.weights(), [each.name for each in component.parameters]
    theirs = [*names, *(name for name in weights if name not in names)]
    theirs = [name for name in theirs if weights[name].is_floating_point()]
    state = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    mine = [name for name, value in state.items() if value.is_floating_point()]
    if [tuple(state[name].shape) for name in mine] != [tuple(weights[name].shape) for name in theirs]:
        return None
    taken = {own: weights[name] for own, name in zip(mine, theirs, strict=True)}
    module.load_state_dict({**module.state_dict(), **taken})
    return module.eval()


def attempted(module, x):
    """What a module gives, or None where it raises."""
    try:
        return module(x)
    except Exception:  # noqa: BLE001 - a mistake may be impossible at this place
        return None


def with_kernels(module, weights):
    """The solution's or a mistake's network with a student's kernels and head; None where they do not fit.

    Kernels of one shape keep their order; norms are without effect.
    """
    state, taken = module.state_dict(), {}
    for name, value in weights.items():
        taken.setdefault(tuple(value.shape), []).append(name)
    for name, value in state.items():
        if value.ndim in (2, 4) or name.startswith("head"):
            names = taken.get(tuple(value.shape), [])
            if not names:
                return None
            state[name] = weights[names.pop(0)]
    if any(len(shape) == 4 and names for shape, names in taken.items()):
        return None
    module.load_state_dict(state)
    return module.eval()


# --- training ---------------------------------------------------------------------------------------------


def of_batches(data, run, *, after=False):
    """What train_epoch should have seen of each batch: scores before its step, and labels.

    Args:
        after: The scores are those after the batch's step.
    """
    weights, rate = torch.from_numpy(data.arrays["weights"]), data.learning_rate
    features, labels = torch.from_numpy(data.arrays["features"]), torch.from_numpy(data.labels)
    start = 0
    for size, gradient in zip(data.batch_sizes, run.arrays["step_gradients"], strict=True):
        stepped = weights - rate * torch.tensor(gradient)
        rows = slice(start, start + size)
        yield features[rows] @ (stepped if after else weights), labels[rows]
        weights, start = stepped, start + size


TRAINING, VALIDATION = {0, 1}, {2, 3}  # the numbers of the images in `loaders`


def loaders(student):
    """What fit is given: two training images in two batches, two validation images in one."""
    images = torch.from_numpy(numbered_images(4, student.next_seed(), (3, 16, 16)))
    return {
        "train": batches(images[:2], torch.tensor([0, 1]), [1, 1]),
        "validation": batches(images[2:], torch.tensor([1, 0]), [2]),
    }


def evaluation(loss, accuracy, classes):
    """What evaluate returns, of two images."""
    return {
        "loss": loss,
        "accuracy": accuracy,
        "targets": torch.tensor([0, 1]),
        "predictions": torch.tensor([0, 1]),
        "probabilities": torch.full((2, classes), 1 / classes),
    }


def numbers_given(student, call):
    """The numbers of the images that a call was given, of those in `loaders`."""
    colored = [batch for batch in image_batches(student, call) if batch.shape[1] == 3]
    return {int(each) for batch in colored for each in image_numbers(batch)} & (TRAINING | VALIDATION)


def loaders_of(student, call):
    """The names of the loaders whose images a call was given."""
    given = numbers_given(student, call)
    return {name for name, numbers in (("train", TRAINING), ("validation", VALIDATION)) if given & numbers}


def fitted(student, fit, rows, training):
    """The outcome of a fit whose evaluate answers by epoch and images; None if it asks otherwise each time.

    Args:
        fit: losses and accuracies that evaluate gives, one after the other -> outcome.
        rows: (loss, accuracy) of the validation images after each epoch.
        training: The same of the training images.
    """
    return measured_by_epochs(
        fit,
        lambda call: loaders_of(student, call),
        trains="train_epoch",
        measures="evaluate",
        rows=rows,
        training=training,
        before=(2.0, 0.05),
        epochs=len(rows),
    )


def unlike_others(name):
    """What is right in a way that a check cannot follow."""
    return Undecided(f"{name} does not use the other parts of the template, so a person has to look.")


# --- measures ---------------------------------------------------------------------------------------------

ARRAYS = ("confusion", "precision", "recall", "f1", "support", "roc_auc")
MEANS = tuple(
    f"{kind}_{name}" for kind in ("macro", "weighted") for name in ("precision", "recall", "f1", "roc_auc")
)


def wrong_measures(found, expected):
    """The names of the measures that are others."""
    return [
        name
        for name in (*ARRAYS, *MEANS)
        if np.shape(found[name]) != np.shape(expected[name])
        or not np.allclose(found[name], expected[name], atol=1e-5, equal_nan=True)
    ]


def roc(targets, probabilities, label):
    """The corners of a class's ROC curve, (alarms, hits), from (0, 0) to (1, 1)."""
    positive, scores = targets == label, probabilities[:, label]
    thresholds = np.concatenate([[np.inf], np.unique(scores)[::-1]])
    return np.array([[(scores[~positive] >= t).mean(), (scores[positive] >= t).mean()] for t in thresholds])
