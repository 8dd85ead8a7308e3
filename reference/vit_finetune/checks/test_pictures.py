"""The pictures, read from the figures."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from grader.kit import (
    Fake,
    Mismatch,
    Undecided,
    bar_lengths,
    batches,
    classes_named,
    curves,
    figure_text,
    heat_maps,
    history_series,
    plotted,
    shares_not_shown,
)

NAMES = ("anvil", "bell", "crown", "drum")
MIXED = ("crown", "anvil", "drum", "bell")  # in no order, so that sorted ones stand elsewhere
MEAN, STD = (0.4, 0.5, 0.3), (0.25, 0.2, 0.3)
CPU = torch.device("cpu")


def picture(student, side=16):
    """An image as it looks, (side, side, 3), and the same normalized, (3, side, side)."""
    looks = torch.rand(3, side, side, generator=student.random)
    mean, std = torch.tensor(MEAN).view(3, 1, 1), torch.tensor(STD).view(3, 1, 1)
    return looks.permute(1, 2, 0).numpy(), (looks - mean) / std


def scaled(value):
    """A drawn image as shares of one."""
    value = np.asarray(value, dtype=float)[..., :3]
    return value / 255 if value.size and value.max() > 1.5 else value


def shows(outcome, looks):
    """Whether some image of the figures is this one."""
    return any(
        value.ndim == 3 and value.shape[:2] == looks.shape[:2] and np.abs(scaled(value) - looks).max() < 0.02
        for value in outcome.arrays.values()
    )


def in_color(outcome):
    """The images in color of the figures, as shares of one."""
    return [scaled(value) for value in outcome.arrays.values() if value.ndim == 3 and value.size]


def framed(outcome, looks):
    """Whether some image of the figures is this one with lines drawn into it."""
    return any(
        value.shape[:2] == looks.shape[:2] and (np.abs(value - looks).max(axis=2) < 0.02).mean() > 0.4
        for value in in_color(outcome)
    )


def spread_out(outcome, looks):
    """Whether some larger image of the figures has the colors of this one, as with gaps between patches."""
    colors = looks.reshape(-1, 1, 3)
    for value in in_color(outcome):
        if value.shape[0] > looks.shape[0] and value.shape[1] > looks.shape[1]:
            pixels = value.reshape(-1, 3)
            some = pixels[np.linspace(0, len(pixels) - 1, min(len(pixels), 2000)).astype(int)]
            if (np.abs(some - colors).max(axis=2).min(axis=0) < 0.02).mean() > 0.3:
                return True
    return False


def is_cut_by_lines(outcome, looks, size):
    """Whether lines over this image lie between its patches, in both directions."""
    borders = np.arange(size, len(looks), size) - 0.5
    for figure in outcome.figures:
        for axes in figure.axes:
            shown = [scaled(outcome.arrays[f"image{number}"]) for number in axes.images]
            if not any(each.shape == looks.shape and np.abs(each - looks).max() < 0.02 for each in shown):
                continue
            places = [outcome.arrays[f"line{number}"] for number in axes.lines]
            if places and all(
                (np.abs(np.concatenate([line[axis] for line in places]) - border) < 0.8).any()
                for axis in (0, 1)
                for border in borders
            ):
                return True
    return False


def require_patches_in_one(outcome, reference, looks, size):
    """Judge patches that are no images by themselves: parts of one image, with lines or gaps between them."""
    if not in_color(outcome):
        raise Mismatch(
            "show_patches draws no image: neither the given one nor its patches are in a figure.",
            hint="imshow for the image, and for each patch in an axes of its own.",
        )
    if spread_out(outcome, looks) or is_cut_by_lines(outcome, looks, size):
        return
    if framed(outcome, looks) and not shows(outcome, looks):
        return
    if not shows(outcome, looks):
        raise Mismatch(
            "No image in the figures is the given one as it was before it was normalized, whole or in "
            "patches.",
            hint="image * std + mean, channel by channel.",
        )
    raise reference.named("patches_are_missing")


# --- patches ----------------------------------------------------------------------------------------------


@pytest.mark.component("show_patches")
@pytest.mark.weight(3)
@pytest.mark.explains("patches_are_drawn", "patches_are_cut_from_the_image")
def test_patches_are_those_of_the_image(student, reference):
    """Each patch is shown as it was, in its place."""
    looks, image = picture(student)
    size, grid = 4, 4
    outcome = plotted(student, "show_patches", image, size, MEAN, STD)
    found = places(outcome, size)
    wanted = {
        (row, column): looks[size * row : size * (row + 1), size * column : size * (column + 1)]
        for row in range(grid)
        for column in range(grid)
    }
    if not found:
        require_patches_in_one(outcome, reference, looks, size)
        return
    values = [value for _, _, value in found]

    def among(patch, every=values):
        return any(np.abs(each - patch).max() < 0.02 for each in every)

    missing = [place for place, patch in wanted.items() if not among(patch)]
    if missing:
        raw = image.permute(1, 2, 0).numpy()
        clipped = [raw[:size, :size], np.clip(raw[:size, :size], 0, 1)]
        if any(among(scaled(each)) or among(each) for each in clipped):
            raise reference.named("patches_not_restored")
        if len(missing) == len(wanted) - 1:
            raise reference.named("patches_all_the_same")
        stretched = ((raw - raw.min()) / np.ptp(raw))[:size, :size]
        if among(stretched):
            raise reference.named("patches_in_their_own_range")
        raise Mismatch(f"Of {len(wanted)} patches, {len(missing)} are not shown as they were.")
    rows = sorted({round(top, 2) for top, _, _ in found}, reverse=True)
    columns = sorted({round(left, 2) for _, left, _ in found})
    if len(rows) != grid or len(columns) != grid:
        return  # arranged in another way, as one row
    where = {(rows.index(round(top, 2)), columns.index(round(left, 2))): value for top, left, value in found}
    if all(np.abs(where[place] - patch).max() < 0.02 for place, patch in wanted.items() if place in where):
        return
    turned = {(column, row): patch for (row, column), patch in wanted.items()}
    if all(np.abs(where[place] - patch).max() < 0.02 for place, patch in turned.items() if place in where):
        raise reference.named("patches_in_columns")
    raise Mismatch("The patches are shown, but not in the places that they have in the image.")


def places(outcome, size):
    """(top, left, patch) of each image of a patch's size."""
    found = []
    for figure in outcome.figures:
        for axes in figure.axes:
            for number in axes.images:
                value = outcome.arrays[f"image{number}"]
                if value.ndim == 3 and value.shape[:2] == (size, size):
                    left, _, _, top = axes.place
                    found.append((top, left, scaled(value)))
    return found


# --- attention --------------------------------------------------------------------------------------------


def attentions(model, image, width=None, *, normalized=True):
    """Attention weights of each block, (heads, tokens, tokens).

    Args:
        width: By whose root scores are divided; None: that of a head.
        normalized: Whether the tokens pass the block's first norm before, as they should.
    """
    kept = []
    hooks = [
        (block.attn if normalized else block).register_forward_pre_hook(
            lambda module, inputs: kept.append(inputs[0])
        )
        for block in model.blocks
    ]
    with torch.no_grad():
        model(image[None])
    for hook in hooks:
        hook.remove()
    found = []
    for block, tokens in zip(model.blocks, kept, strict=True):
        with torch.no_grad():
            qkv = block.attn.qkv(tokens)
        q, k, _ = qkv[0].reshape(qkv.shape[1], 3, model.blocks[0].attn.num_heads, -1).permute(1, 2, 0, 3)
        found.append((q @ k.transpose(-2, -1) * (width or q.shape[-1]) ** -0.5).softmax(dim=-1))
    return found


@pytest.mark.component("show_attention")
@pytest.mark.weight(4)
@pytest.mark.explains("attention_is_drawn", "attention_of_a_known_model")
def test_attention_is_that_of_the_class_token(student, reference):
    """The map is the last block's attention of the class token to the patches, the mean over the heads."""
    component = student.build("build_model", 4)
    component.set_weights({k: 1.6 * v for k, v in component.weights().items() if k.endswith("qkv.weight")})
    model = reference.oracle.twin(reference, component, 4)
    if model is None:
        raise Mismatch("build_model gives a different model from the provided one.")
    _, image = picture(student, 32)
    outcome = plotted(student, "show_attention", component, image, MEAN, STD)
    maps = list(shown_maps(outcome))
    every = attentions(model, image)
    last = every[-1]
    right = last.mean(dim=0)[0, 1:].reshape(8, 8).numpy()
    wrong = {
        "attention_of_the_first_block": [every[0].mean(dim=0)[0, 1:]],
        "attention_of_one_head": [head[0, 1:] for head in last],
        "attention_to_the_class_token": [last.mean(dim=0)[1:, 0]],
        "attention_of_the_patches": [
            last.mean(dim=0)[1:, 1:].mean(dim=0),
            last.mean(dim=0)[:, 1:].mean(dim=0),
        ],
        "attention_shifted": [last.mean(dim=0)[0, :-1]],
        "attention_transposed": [last.mean(dim=0)[0, 1:].reshape(8, 8).T.flatten()],
        "attention_scaled_by_the_width": [attentions(model, image, 96)[-1].mean(dim=0)[0, 1:]],
        "attention_before_the_norm": [attentions(model, image, normalized=False)[-1].mean(dim=0)[0, 1:]],
        "attention_of_the_strongest_head": [last.amax(dim=0)[0, 1:]],
    }
    others = [each.reshape(8, 8).numpy() for candidates in wrong.values() for each in candidates]
    for each in maps:
        # enlarged smoothly, a wrong map is like the right one, too: then the likest one counts
        if like(each, right) and likeness(each, right) >= max(likeness(each, other) for other in others):
            return
    for id_, candidates in wrong.items():
        if any(like(each, candidate.reshape(8, 8).numpy()) for each in maps for candidate in candidates):
            raise reference.named(id_)
    if not maps:
        raise Mismatch("No figure shows a map of 8 x 8 patches, nor one of the image's size.")
    raise Mismatch("The map that is shown is not the last block's attention of the class token.")


def shown_maps(outcome):
    """The maps of the figures: of the patches, or as large as the image."""
    for value in outcome.arrays.values():
        value = np.asarray(value, dtype=float)
        if value.ndim == 1 and value.size in (64, 1024):
            value = value.reshape(math.isqrt(value.size), -1)
        if value.ndim == 2 and value.shape[0] == value.shape[1] and value.shape[0] in (8, 32, 224):
            yield value


def like(found, right):
    """Whether a map is this one of 8 x 8 patches, scaled as one likes, enlarged by squares or smoothly."""
    return likeness(found, right) > (0.9995 if is_in_squares(found) else 0.985)


def is_in_squares(found):
    """Whether a map has one number for each of 8 x 8 patches, perhaps rounded to whole colors."""
    size = len(found) // 8
    squares = found.reshape(8, size, 8, size)
    return bool(np.ptp(squares, axis=(1, 3)).max() <= 0.01 * np.ptp(found))


def likeness(found, right):
    """The correlation of a map with this one of 8 x 8 patches, enlarged by squares or smoothly."""
    if np.ptp(found) == 0 or np.ptp(right) == 0:
        return 0.0
    small, found_in = torch.from_numpy(np.array(right, dtype=float))[None, None], []
    for mode in ("nearest",) if is_in_squares(found) else ("nearest", "bilinear", "bicubic"):
        for corners in (None,) if mode == "nearest" else (False, True):
            enlarged = F.interpolate(small, size=found.shape, mode=mode, align_corners=corners)
            found_in.append(float(np.corrcoef(found.ravel(), enlarged.numpy().ravel())[0, 1]))
    return max(found_in)


@pytest.mark.component("show_attention")
@pytest.mark.weight(1)
@pytest.mark.explains("attention_shows_the_image_as_it_was")
def test_attention_stands_beside_the_image(student, reference):
    """The image is shown as it was before it was normalized, and the model stays as it is."""
    looks, image = picture(student, 32)
    component = student.build("build_model", 4)
    before = component.weights()
    outcome = plotted(student, "show_attention", component, image, MEAN, STD)
    if not shows(outcome, looks):
        raise reference.named("attention_not_restored")
    if not reference.oracle.same_weights(before, component.weights(), 1e-7):
        raise Mismatch("show_attention changes the model's weights.")


# --- history ----------------------------------------------------------------------------------------------


@pytest.mark.component("plot_history")
@pytest.mark.weight(3)
@pytest.mark.explains("history_is_drawn", "history_shows_every_epoch", "history_says_what_it_shows")
def test_history_is_drawn_as_curves(student, reference):
    """Both stages are in one picture: losses and accuracies of training and validation, epoch by epoch."""
    outcome, values = _history(student, reference)
    found = curves(outcome)
    for what, wanted in values.items():
        # of training, what evaluate says of its images as they are is right, too
        shown = [wanted] + [[loss for loss, _ in UNMIXED]] * (what == "training loss")
        if not any(_in_pieces(found, each) or any(_draws(c, each) for c in found) for each in shown):
            if what.startswith("validation") and any(
                _draws(curve, values.get("training loss", ())) for curve in found
            ):
                raise reference.named("history_without_validation")
            if any(_draws(curve, part) for curve in found for part in (wanted[:2], wanted[2:])):
                raise reference.named("history_of_one_stage")
            raise Mismatch(f"No curve shows the {what} of all five epochs.")
    if all(curve.x_label + curve.y_label + curve.title + curve.name == "" for curve in found):
        raise reference.named("history_without_names")
    if any(_is_called_the_other(curve, values) for curve in found):
        raise reference.named("history_names_exchanged")


def _is_called_the_other(curve, values):
    """Whether a curve of validation is called training, or one of training validation."""
    name, around = curve.name.lower(), (curve.title + curve.y_label).lower()
    said = {part for part, word in (("training", "train"), ("validation", "val")) if word in name}
    drawn = {
        what.partition(" ")[0]
        for what, wanted in values.items()
        if any(_draws(curve, part) for part in pieces_of({what: wanted}))
    }
    # "head training" in an axes of validation may name a stage
    is_told_around = any(part[:3] in around for part in drawn)
    return len(said) == len(drawn) == 1 and said != drawn and not is_told_around


@pytest.mark.component("plot_history")
@pytest.mark.weight(1)
@pytest.mark.because("history_is_drawn_as_curves")
@pytest.mark.explains("history_marks_stage_2")
def test_history_marks_the_stages(student, reference):
    """Something marks where stage 2 begins, and its curves begin there."""
    outcome, values = _history(student, reference)
    found = curves(outcome)
    if not any(_draws(curve, each) for curve in found for each in pieces_of(values)):
        raise Mismatch("No curve shows a loss or an accuracy, so there is nothing in which a stage begins.")
    said = figure_text(outcome).lower()
    words = ("stage", "phase", "unfre", "fine", "head")
    upright = any(len(curve.x) >= 2 and np.ptp(curve.x) == 0 for curve in found)
    pieces = any(len(curve.y) in (2, 3) and np.ptp(curve.x) > 0 for curve in found)
    if not upright and not pieces and not any(word in said for word in words):
        raise reference.named("history_without_stages")
    if any(_lie_over_each_other(axes, outcome, values) for each in outcome.figures for axes in each.axes):
        raise reference.named("history_stages_over_each_other")


def _lie_over_each_other(axes, outcome, values):
    """Whether curves of both stages are in axes, and those of stage 2 begin before the line that marks it."""
    lines = [outcome.arrays[f"line{number}"] for number in axes.lines]
    marks = [x[0] for x, _ in lines if len(x) >= 2 and np.ptp(x) == 0]
    first, second = (
        [x for x, y in lines if any(_has(y, part) for part in parts)]
        for parts in ([each[:2] for each in values.values()], [each[2:] for each in values.values()])
    )
    if not first or not marks:
        return False
    return any(min(x) < min(min(marks) - 1, max(map(max, first))) for x in second)


def pieces_of(values):
    """The values of the whole history, and those of each stage."""
    return [part for each in values.values() for part in (each, each[:2], each[2:], each[1:])]


UNMIXED = [(0.45, 0.81), (0.42, 0.83), (0.35, 0.87), (0.31, 0.92), (0.22, 0.97)]  # of the training images


def _history(student, reference):
    """The outcome of a drawing of a fit's own history of five epochs, and its values."""
    training = [(0.91, 0.31), (0.72, 0.52), (0.63, 0.63), (0.55, 0.64), (0.51, 0.68)]
    validation = [(0.84, 0.41), (0.75, 0.47), (0.77, 0.52), (0.71, 0.57), (0.70, 0.61)]
    shift = 0.04 * torch.rand((), generator=student.random).item()
    training, validation = (
        [(loss + shift, accuracy + shift) for loss, accuracy in rows] for rows in (training, validation)
    )
    targets = torch.tensor([0, 1])
    methods = {
        "step": Fake.script([False], kind="function", name="step"),
        "restore": Fake.script([None], kind="function", name="restore"),
    }
    images = {part: student.tensor(2, 3, 32, 32) for part in ("train", "validation")}
    loaders = {part: batches(each, torch.tensor([0, 1]), [1, 1]) for part, each in images.items()}

    def call_fit(rows):
        fakes = {
            "train_one_epoch": Fake.script(training),
            "evaluate": Fake.script([(*row, targets, targets) for row in rows]),
            "EarlyStopping": Fake.script([None], methods=methods),
        }
        return student.call("fit", student.build("build_model", 4), loaders, (2, 3), CPU, replace=fakes)

    def whose(call):
        given = reference.oracle.images_among(student, call)
        return None if given is None else reference.oracle.origins(given, images)

    fitted = student.attempted(
        lambda: reference.oracle.fitted_by_epochs(call_fit, whose, validation, UNMIXED, 5)
    )
    if fitted is None or len(fitted.returned.plain or ()) == 0:
        raise Mismatch("There is no history to draw: fit has to work first.")
    values = {
        "training loss": [each[0] for each in training],
        "validation loss": [each[0] for each in validation],
        "validation accuracy": [each[1] for each in validation],
    }
    if len(fitted.calls_of("train_one_epoch")) < len(training):
        del values["training loss"]  # some are those of its own training
    if not fitted.calls_of("evaluate"):
        values = history_series(fitted.returned.plain, 5)
        if not any(name.startswith("validation") for name in values):
            raise Undecided("fit measures by itself, and its history names no losses or accuracies of that")
    return plotted(student, "plot_history", fitted.returned.plain), values


def _draws(curve, values):
    """Whether a curve has these values, or the same in percent."""
    return _has(curve.y, values)


def _has(y, values):
    """Whether these are the values, or the same in percent."""
    return any(
        len(y) == len(values) and np.allclose(y, factor * np.array(values), atol=1e-3 * factor)
        for factor in (1, 100)
    )


def _in_pieces(found, values):
    """Whether two curves show a stage each."""
    pieces = [(values[:2], values[2:]), (values[:2], values[1:])]
    return any(
        any(_draws(curve, one) for curve in found) and any(_draws(curve, two) for curve in found)
        for one, two in pieces
    )


# --- classes ----------------------------------------------------------------------------------------------


@pytest.mark.component("plot_per_class")
@pytest.mark.weight(2)
@pytest.mark.explains("classes_are_drawn", "bars_have_names")
def test_classes_have_their_names(student, reference):
    """Each class is shown with its name, even one that has no accuracy, and an axis says what is drawn."""
    outcome = plotted(student, "plot_per_class", list(NAMES), np.array([0.4, math.nan, 0.9, 0.7]))
    if set(classes_named(figure_text(outcome), NAMES)) != set(range(len(NAMES))):
        raise reference.named("classes_without_names")
    axes = [axes for figure in outcome.figures for axes in figure.axes]
    if all(each.x_label + each.y_label + each.title == "" for each in axes) and not any(
        figure.title for figure in outcome.figures
    ):
        raise reference.named("classes_without_a_label")


def require_shown(outcome, accuracies):
    """Judge that bars, lines, maps or texts show the accuracies, as shares or in percent."""
    for accuracy in shares_not_shown(outcome, accuracies, NAMES):
        raise Mismatch(
            f"A class has the accuracy {accuracy:.2f}, which no bar, no line and no number in the figure "
            "shows.",
            hint="ax.bar(range(len(names)), accuracies)",
        )


def have_moved_up(lengths, accuracies):
    """Whether the bars are those of the classes that have an accuracy, beside the first of all names."""
    known = accuracies[np.isfinite(accuracies)]
    drawn = [lengths.get(label, ()) for label in range(len(known))]
    behind = [
        length for label in range(len(known), len(NAMES)) for length in lengths.get(label, ()) if length
    ]
    if behind or any(len(each) != 1 for each in drawn):
        return False
    return any(np.allclose(np.ravel(drawn), unit * known, atol=5e-3 * unit) for unit in (1, 100))


@pytest.mark.component("plot_per_class")
@pytest.mark.weight(2)
@pytest.mark.because("classes_have_their_names")
@pytest.mark.explains("bars_are_as_long_as_accuracies")
def test_bars_show_their_accuracies(student, reference):
    """The bar of each class is as long as its accuracy, whatever the order of the bars."""
    # never in an order, and never two alike
    accuracies = np.array([0.55, math.nan, 0.85, 0.25]) + torch.rand(4, generator=student.random).numpy() / 10
    outcome = plotted(student, "plot_per_class", list(NAMES), accuracies)
    lengths = bar_lengths(outcome, NAMES)
    if have_moved_up(lengths, accuracies):
        raise reference.named("bars_move_up_past_absent")
    if any(len(lengths.get(label, ())) != 1 for label in (0, 2, 3)):
        require_shown(outcome, accuracies)
        return  # not bars, or their names are elsewhere
    drawn = np.array([lengths.get(label, [0.0])[0] for label in range(len(NAMES))])
    drawn = drawn / (100 if np.abs(drawn).max() > 1.5 else 1)
    wanted = np.nan_to_num(accuracies)
    if np.allclose(drawn, wanted, atol=5e-3):
        return
    if np.allclose(drawn, np.nan_to_num(1 - accuracies), atol=5e-3):
        raise reference.named("bars_of_errors")
    if np.allclose(np.sort(drawn), np.sort(wanted), atol=5e-3):
        raise reference.named("bars_at_other_names")
    label = int(np.abs(drawn - wanted).argmax())
    said = f"its accuracy is {wanted[label]:.2f}" if wanted[label] else "it has no accuracy"
    raise Mismatch(
        f"The bar beside {NAMES[label]!r} is {drawn[label]:.2f} long; {said}.",
        hint="Draw the accuracies as they are given, and NaN as nothing.",
        look_for="bar() | barh()",
    )


@pytest.mark.component("plot_confusion_matrix")
@pytest.mark.weight(3)
@pytest.mark.explains("matrix_is_drawn", "matrix_has_the_true_classes_as_rows", "matrix_names_its_classes")
def test_confusion_matrix_is_shown(student, reference):
    """The counts are shown with the true classes as rows, and both axes have the names."""
    matrix = torch.randint(1, 40, (len(MIXED), len(MIXED)), generator=student.random).numpy()
    outcome = plotted(student, "plot_confusion_matrix", matrix, list(MIXED))
    found = heat_maps(outcome, MIXED, whole=True)
    if not found:
        raise Mismatch("No figure shows a map of 4 x 4 counts.", hint="imshow, pcolormesh or a heat map.")
    shown = found[0]
    is_turned = shown.row_role == "predicted" or shown.column_role == "true"
    right = [(form.T if is_turned else form, rounded) for form, rounded in forms_of(matrix)]
    named = [(in_order_of_names(shown, form), rounded) for form, rounded in right]
    if not is_shown((shown.values, shown.counted), named):
        if is_shown((shown.values, shown.counted), right):
            raise reference.named("matrix_names_misplaced")
        other = [(in_order_of_names(shown, form.T), rounded) for form, rounded in right]
        if is_shown((shown.values.T, shown.counted.T), right) or is_shown((shown.values,), other):
            raise reference.named("matrix_transposed")
        raise Mismatch("What the map shows is not the matrix.")
    if not shown.is_named:
        raise reference.named("matrix_without_names")
    if is_shown((shown.written.T,), named) and not is_shown((shown.written,), named):
        raise reference.named("matrix_counts_written_transposed")


def forms_of(matrix):
    """The counts, and the shares of the true classes as such and in percent, with how far each is rounded."""
    rows = matrix / matrix.sum(axis=1, keepdims=True)
    return [(matrix, 1e-2), (rows, 6e-3), (100 * rows, 0.51)]


def in_order_of_names(shown, form):
    """A form of the matrix, with rows and columns in the order in which the map names them."""
    return form[np.ix_(shown.row_classes, shown.column_classes)] if shown.is_named else form


def is_shown(maps, forms):
    """Whether one of the maps is one of the forms."""
    return any(np.allclose(values, form, rtol=0, atol=rounded) for values in maps for form, rounded in forms)
