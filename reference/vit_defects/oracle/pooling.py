"""How the head reads the encoder's output."""

import itertools

import torch
from torch.nn import functional as F

from grader.kit import AffineFake, Mismatch, Undecided, same
from grader.kit.transformers import linear_layers

EPSILONS = (1e-5, 1e-6, 1e-12)  # of PyTorch, of timm and Keras, of BERT
LOGARITHMS = ("softmax", "Softmax", "logsumexp", ".log(", "torch.log")  # a ViT that returns them names one


def pooled_by(model, encoded, scores):
    """How the head reads the encoder's output, (batch, tokens, dim), when it is of a usual form.

    Returns:
        `cls`, `mean`, or what it is instead (`mean of the patches`, `max`, `sum`, `last`, `second`);
        empty when the head is of no usual form.
    """
    dim, classes = encoded.shape[-1], scores.shape[-1]
    held = model.weights()
    weights = {parameter.name: held[parameter.name] for parameter in model.parameters}
    pools = {
        "cls": lambda z: z[:, 0],
        "mean": lambda z: z.mean(dim=1),
        "mean of the patches": lambda z: z[:, 1:].mean(dim=1),
        "max": lambda z: z.amax(dim=1),
        "sum": lambda z: z.sum(dim=1),
        "last": lambda z: z[:, -1],
        "second": lambda z: z[:, 1],
    }
    heads = list(linear_layers(weights, dim, classes))
    # what is all ones or all zeros to begin with may be the gain or the bias of a normalization
    gains, biases_of_norms = (
        [
            weights[n].flatten()
            for n, v in sorted(model.initial.items(), key=lambda item: item[1].ndim)  # tokens are no vectors
            if n in weights and v.numel() == dim and (v == k).all()
        ]
        for k in (1, 0)
    )
    affine = list(itertools.product(gains[:3], biases_of_norms[:4]))
    for name, pool in pools.items():
        # normalized, a sum is the mean but for epsilon
        behind = affine if name != "sum" else ()
        for pooled in normed_twice(encoded, pool, affine, behind):
            if any(same(scores, F.linear(pooled, *head)) for head in heads):
                return name
    return ""


def normed_twice(encoded, pool, before, behind):
    """What a pooling gives, with a normalization before, behind, both or none.

    Args:
        before, behind: Pairs of gain and bias, (dim,) each.
    """
    width = encoded.shape[-1:]
    for epsilon in EPSILONS:
        for z in (encoded, *(F.layer_norm(encoded, width, *pair, epsilon) for pair in before)):
            yield pool(z)
            for pair in behind:
                yield F.layer_norm(pool(z), width, *pair, epsilon)


def require_pool(student, reference, pool, rolled, still):
    """Judge the pooling of a head of no usual form by which patches its scores depend on.

    Args:
        rolled: The model around an encoder that moves the last of the patches to the front.
        still: Makes the model around an encoder that does nothing.

    Raises:
        Mismatch: It does not pool as it was asked to.
    """
    model = still()
    images = student.tensor(2, 2, 15, 15)
    moved, unmoved = patches_that_matter(rolled, images), patches_that_matter(model, images)
    if pool == "mean":
        # the mean may leave out the token in front, where the class token is
        if sum(unmoved) < 9 or sum(moved) < 8:
            raise reference.named("mean_pooling_ignored")
    elif all(moved):
        raise reference.named("cls_pooling_ignored")
    elif model.calls[0][1].shape[1] == 10 and (any(unmoved) or (rolled.rolls and not any(moved))):
        # without a class token the first patch is read: that is another check's
        raise reference.named("wrong_token_read")


def patches_that_matter(model, images):
    """For each of the 3 x 3 patches, whether the scores change with it."""
    depends = []
    scores = model(images)
    for number in range(9):
        row, column = divmod(number, 3)
        changed = images.clone()
        changed[:, :, 5 * row : 5 * row + 5, 5 * column : 5 * column + 5] += torch.linspace(1, 3, 25).view(
            5, 5
        )
        depends.append(bool((model(changed) - scores).abs().max() > 1e-5))
    return depends


def returns_log_probabilities(student, classes):
    """Whether the student's ViT ends with a log_softmax, so that the matching loss is the negative logarithm.

    Raises:
        Undecided: The ViT cannot tell, because it does not work, and the source speaks of log-probabilities.
    """
    options = {"image_size": 8, "patch_size": 4, "dim": 12, "depth": 1, "heads": 2, "mlp_dim": 16}
    try:
        model = student.build("ViT", **options, num_classes=classes, replace={"Transformer": AffineFake()})
        scores = model(student.tensor(3, 1, 8, 8), shape=(3, classes))
    except Mismatch as error:
        if not any(name in text for text in (student.program.source or {}).values() for name in LOGARITHMS):
            return False
        raise Undecided(
            "the loss is right for a ViT that returns log-probabilities, but the ViT cannot be tried"
        ) from error
    return same(scores.exp().sum(dim=1), scores.new_ones(3))


def trains_by_cross_entropy(student):
    """Whether the source takes a cross-entropy of scores, and nowhere the loss of log-probabilities."""
    texts = [text.casefold() for text in (student.program.source or {}).values()]
    return any("cross_entropy" in text or "crossentropy" in text for text in texts) and not any(
        "nll" in text for text in texts
    )
