"""What several checks need: naming a mistake by what it would do in a student's place, and small models."""

import copy

import numpy as np
import torch

from grader.kit import Cause, Library, Mismatch, image_batches, measured_by_epochs

SIZE = {"image_size": 8, "patch_size": 4, "num_layers": 3, "num_heads": 2, "hidden_dim": 8, "mlp_dim": 12}
BEFORE = (3.0, 0.01)  # loss and accuracy of a model that is not trained yet: worse than all that follows


def name(reference, part, found, result, agree):
    """Raise the known mistake of a part that gives what was found.

    Args:
        result: What the mistake's class or function gives in the same place.
        agree: Whether two results are one.
    """
    for mistake in reference.mistakes_of(part):
        try:
            same = agree(found, result(mistake.namespace[part]))
        except Exception:  # noqa: BLE001 - this mistake cannot be made here
            continue
        if same:
            raise reference.named(mistake.id)


def undone(message, what, hint=""):
    """What to raise where something is not done at all; what fails for this, too, is folded under it."""
    return Mismatch(message, hint=hint, cause=Cause.NOT_IMPLEMENTED, concerns=what)


def images_among(student, call):
    """The images that a call was given in batches, (n, channels, height, width); None if none are found."""
    found = image_batches(student, call)
    if len({each.shape[1:] for each in found}) != 1:
        return None
    return torch.cat([each.float() for each in found])


def fitted_by_epochs(call_fit, whose, rows, training, epochs):
    """The outcome of a fit whose validation images give one row after each epoch."""
    return measured_by_epochs(
        call_fit,
        whose,
        trains="train_one_epoch",
        measures="evaluate",
        rows=rows,
        training=training,
        before=BEFORE,
        epochs=epochs,
    )


def origins(images, known):
    """Of which set each image is: a name of `known`, or an empty text.

    Args:
        images: (n, channels, height, width), as they were handed out, or brighter, or of another contrast.
        known: Name -> images, (m, channels, height, width).
    """
    found = []
    for image in images:
        names = [
            name
            for name, others in known.items()
            for other in others
            if other.shape == image.shape and float(correlation(image, other)) > 0.95
        ]
        found.append(names[0] if names else "")
    return found


def correlation(one, other):
    """The correlation of two images; NaN where one of them is all the same."""
    return torch.corrcoef(torch.stack([one.flatten(), other.flatten()]))[0, 1]


def rows(value, count=None, classes=None):
    """Whole numbers that a student gives as an array, a tensor or a list."""
    found = value.array(count, whole=True)
    if classes is not None and len(found) and not (found.min() >= 0 and found.max() < classes):
        raise Mismatch("Where there should be classes, there are numbers that are not classes.")
    return found


def generator(seed):
    """A generator of numpy's in the worker."""
    return Library("numpy.random.default_rng", int(seed))


def built(student, classes):
    """The provided model in the worker, as the student's file has it."""
    return student.build("build_model", classes)


def torchvisions(student):
    """A small model of torchvision's in the worker."""
    made = Library("torchvision.models.VisionTransformer", num_classes=4, **SIZE)
    return student.component(student.keep(made))


def twin(reference, component, classes):
    """The solution's model with the numbers of the student's; None where it is another one."""
    model = reference.build_model(classes)
    weights, own = component.weights(), model.state_dict()
    if set(weights) != set(own) or any(weights[name].shape != own[name].shape for name in own):
        return None
    model.load_state_dict(weights)
    return model


def drawn_anew(one, other):
    """Whether the weights of two models were drawn independently, as those of two new models are.

    Independent tensors of n numbers correlate by some 1 / sqrt(n); chance never reaches five times that.
    """
    pairs = [(one[name].flatten(), other[name].flatten()) for name in one if one[name].dim() > 1]
    large = [
        torch.corrcoef(torch.stack(pair))[0, 1].abs() * len(pair[0]) ** 0.5
        for pair in pairs
        if pair[0].std() > 0
    ]
    return bool(large) and max(large) < 5


def copied(model):
    """A model for a mistake to spoil."""
    return copy.deepcopy(model)


def learning(student, component):
    """The names of the parameters that require gradients by now."""
    return {each.name for each in student.component(component).parameters if each.trainable}


def numbers(value, count=None):
    """What a student gives as an array, of whole numbers or not."""
    try:
        return value.array(count, whole=True)
    except Mismatch:
        return value.array(count, finite=False)


def close(one, other, tolerance=1e-4):
    """Whether two numbers, or two rows of numbers, are the same."""
    return np.shape(one) == np.shape(other) and bool(
        np.allclose(np.asarray(one, float), np.asarray(other, float), atol=tolerance, equal_nan=True)
    )


def same_weights(one, other, tolerance=1e-4):
    """Whether two state dicts hold the same numbers."""
    return set(one) == set(other) and all(torch.allclose(one[key], other[key], atol=tolerance) for key in one)
