"""What the tokens that reach the encoder depend on: the patch, the place, the parameters."""

import torch

from grader.kit import same


def is_affine(function, x):
    """Whether a function of images is a x + b: half-way between two images it gives the mean."""
    y = x.flip(0)
    return same((function(x) + function(y)) / 2, function((x + y) / 2), tolerance=1e-3)


def moved_by(model, output):
    """What `output()` becomes when one trained parameter after the other is moved: (value, output)."""
    weights = model.weights()
    for parameter in model.parameters:
        value = weights[parameter.name]
        if parameter.trainable and value.is_floating_point():
            step = torch.linspace(0.5, 1.5, value.numel()).view_as(value)
            model.set_weights({parameter.name: value + step * (1.0 + value.abs())})
            yield value, output()
            model.set_weights({parameter.name: value})


def moves_first_only(model, tokens):
    """Whether some parameter changes the first of the tokens, (batch, tokens, dim), and no other."""
    before = tokens()
    for _, after in moved_by(model, tokens):
        moved = (after - before).abs().amax(dim=(0, 2)) > 1e-5
        if bool(moved[0]) and not bool(moved[1:].any()):
            return True
    return False


def learned_places(model, rows):
    """The places whose token, of equal patches, (patches, dim), some parameter moves against the others."""
    before = rows()
    places = set()
    for value, after in moved_by(model, rows):
        change = after - before
        if value.numel() >= before.shape[-1] and not same(
            change, change[:1].expand_as(change), tolerance=1e-3
        ):
            places |= set((change.abs().amax(dim=-1) > 1e-5).nonzero().flatten().tolist())
    return places


def are_concatenated(tokens, alike):
    """Whether some features depend on the place alone and the others on the patch alone.

    Args:
        tokens: Of several images, (images, patches, dim).
        alike: Of equal patches, (patches, dim).
    """
    by_patch = (tokens - tokens[:1]).abs().amax(dim=(0, 1)) > 1e-5
    by_place = (alike - alike[:1]).abs().amax(dim=0) > 1e-5
    return bool(by_patch.any()) and bool(by_place.any()) and not bool((by_patch & by_place).any())


def positions_multiply(model, tokens, images):
    """Whether some parameter of the positions' size wipes out image and place when it is zero."""
    weights = model.weights()
    _, count, dim = tokens(images).shape
    for parameter in model.parameters:
        value = weights[parameter.name]
        if value.numel() in ((count - 1) * dim, count * dim):
            model.set_weights({parameter.name: value * 0})
            found = tokens(images)[:, 1 - count :]
            model.set_weights({parameter.name: value})
            if same(found[:1, :1].expand_as(found), found):
                return True
    return False
