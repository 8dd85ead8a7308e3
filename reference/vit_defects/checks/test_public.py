"""The public checks: students have them, and run them on their own machine as often as they like.

Each asks one question. The first line of its docstring is what the student reads.
"""

import pytest

from grader.kit import Mismatch, StandIn, named

DEFAULTS = {
    "image_size": 28,
    "patch_size": 4,
    "num_classes": 6,
    "dim": 64,
    "depth": 6,
    "heads": 4,
    "mlp_dim": 128,
}


# first, because it needs nothing but the text of the file: what follows waits until that is loaded
@pytest.mark.component("submission")
def test_names_are_the_templates(student):
    """Every graded part has exactly the name of the template."""
    for near in student.program.near_names:
        raise Mismatch(
            f"{named(near.found)} was taken for `{near.expected}` and graded as such.",
            hint=f"Call it `{near.expected}`.",
            diagnosis="near_name",
            where=str(near.place),
        )


@pytest.mark.component("submission")
def test_file_can_be_loaded(student):
    """The file can be loaded, and every graded part is in it."""
    problems = student.loaded.problems
    if problems:
        first = problems[0]
        raise Mismatch(f"Loading it raised {first}.", where=first.where)
    graded = {
        *("PreNorm", "FeedForward", "Attention", "Transformer", "ViT"),
        *("train_epoch", "evaluate", "plot_confusion_matrix", "plot_classwise_predictions"),
    }
    for missing in sorted(graded - set(student.loaded.kinds)):
        raise student.missing(missing)


@pytest.mark.component("PreNorm")
def test_prenorm_keeps_the_shape(student):
    """PreNorm hands x through the module that it wraps: (batch, tokens, dim) stays (batch, tokens, dim)."""
    x = student.tensor(2, 5, 22)
    prenorm = student.build("PreNorm", 22, inner=StandIn())
    prenorm(x, shape=(2, 5, 22))
    if len(prenorm.calls) != 1:
        raise Mismatch(f"PreNorm called the wrapped module {len(prenorm.calls)} times instead of once.")


@pytest.mark.component("FeedForward")
def test_feed_forward_keeps_the_shape(student):
    """FeedForward maps (batch, tokens, dim) to (batch, tokens, dim)."""
    student.build("FeedForward", 22, 31)(student.tensor(2, 5, 22), shape=(2, 5, 22))


@pytest.mark.component("FeedForward")
def test_feed_forward_takes_each_token_alone(student):
    """FeedForward treats every token by itself: changing one token changes no other."""
    x = student.tensor(2, 5, 22)
    feed_forward = student.build("FeedForward", 22, 31)
    before = feed_forward(x, shape=(2, 5, 22))
    changed = x.clone()
    changed[1, 3] += student.tensor(22)
    moved = (feed_forward(changed, shape=(2, 5, 22)) - before).abs().amax(dim=-1) > 1e-5
    if not moved[1, 3]:
        raise Mismatch("Changing a token does not change FeedForward's output for it.")
    if int(moved.sum()) != 1:
        raise Mismatch("Changing one token changes FeedForward's output for other tokens too.")


@pytest.mark.component("Attention")
def test_attention_keeps_the_shape(student):
    """Attention maps (batch, tokens, dim) to (batch, tokens, dim), for any number and width of heads."""
    for heads, dim_head, tokens in ((5, 4, 7), (1, 22, 3), (2, 3, 1)):
        attention = student.build("Attention", 22, heads=heads, dim_head=dim_head)
        attention(student.tensor(2, tokens, 22), shape=(2, tokens, 22))


@pytest.mark.component("Attention")
def test_attention_keeps_images_apart(student):
    """Attention never mixes the images of a batch."""
    x = student.tensor(3, 7, 22)
    attention = student.build("Attention", 22, heads=5, dim_head=4)
    together = attention(x, shape=(3, 7, 22))
    changed = x.clone()
    changed[2] += student.tensor(7, 22)
    apart = attention(changed, shape=(3, 7, 22))
    if (together[:2] - apart[:2]).abs().max() > 1e-5:
        raise Mismatch(
            "The output for one image changes when another image of the batch changes.",
            hint="Look at every reshape and transpose: the batch axis must stay by itself.",
            diagnosis="batch_leak",
        )


@pytest.mark.component("Attention")
def test_attention_looks_at_every_token(student):
    """In Attention every token's output depends on every other token."""
    x = student.tensor(1, 6, 22)
    attention = student.build("Attention", 22, heads=5, dim_head=4)
    before = attention(x, shape=(1, 6, 22))
    changed = x.clone()
    changed[0, 4] += 2 * student.tensor(22)
    moved = (attention(changed, shape=(1, 6, 22)) - before)[0].abs().amax(dim=-1)
    unmoved = [token for token, distance in enumerate(moved) if distance < 1e-7]
    if unmoved:
        raise Mismatch(
            f"Changing token 4 of 6 leaves the output for token {unmoved[0]} as it was.",
            hint="Each query is compared with the keys of all tokens.",
        )


@pytest.mark.component("Transformer")
def test_transformer_keeps_the_shape(student):
    """Transformer maps (batch, tokens, dim) to (batch, tokens, dim)."""
    stand_ins = {"Attention": StandIn(roll=1), "FeedForward": StandIn(), "PreNorm": StandIn(wraps=True)}
    transformer = student.build("Transformer", 22, 2, 5, 4, 31, replace=stand_ins)
    transformer(student.tensor(2, 7, 22), shape=(2, 7, 22))


@pytest.mark.component("ViT")
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"image_size": 32, "patch_size": 8, "channels": 3, "num_classes": 10},
        {"depth": 1, "dim": 22, "heads": 5, "dim_head": 4, "mlp_dim": 31, "pool": "mean"},
    ],
)
def test_vit_returns_logits(student, changes):
    """ViT maps images (batch, channels, height, width) to one score per class, (batch, classes)."""
    options = {**DEFAULTS, "depth": 2, **changes}
    stand_in = {"Transformer": StandIn()}
    images = student.tensor(3, options.get("channels", 1), options["image_size"], options["image_size"])
    student.build("ViT", **options, replace=stand_in)(images, shape=(3, options["num_classes"]))


@pytest.mark.component("train_epoch")
def test_train_epoch_runs(student, class_names):
    """train_epoch goes through the loader once and takes an optimizer step for every batch."""
    from grader.kit import trainable_data

    data = trainable_data(class_names, (8,) * 6, features=5, seed=student.next_seed())
    run = student.run("train_epoch", data)
    if len(run.forwards) != 6:
        raise Mismatch(f"For a loader of 6 batches the model was called {len(run.forwards)} times.")
    if run.steps != 6:
        raise Mismatch(
            f"For a loader of 6 batches the optimizer took {run.steps} steps.",
            hint="Call optimizer.step() once for every batch, after loss.backward().",
            diagnosis="no_step" if run.steps == 0 else None,
        )


@pytest.mark.component("evaluate")
def test_evaluate_runs(student, class_names):
    """evaluate goes through the loader once and reports numbers, other ones for another data set."""
    from grader.kit import evaluations
    from grader.kit.reported import places

    found = evaluations(student, "evaluate", class_names)
    for data, run in found:
        count, seen = sum(data.batch_sizes), sum(forward.size for forward in run.forwards)
        if seen != count:
            raise Mismatch(f"Of {count} images in the loader, the model was shown {seen}.")
        if not run.history and not run.returned and not any(letter.isdigit() for letter in run.printed):
            raise Mismatch("evaluate reports nothing: it neither prints, appends nor returns a number.")
    reported = places([run for _, run in found])
    if reported and all(place.is_constant for place in reported):
        raise Mismatch(
            "evaluate reports the same numbers for data sets on which the model does differently well.",
            hint="Compute them from the model's scores and the labels.",
            diagnosis="numbers_not_computed",
        )


@pytest.mark.component("plot_confusion_matrix")
def test_confusion_matrix_is_drawn(student, class_names):
    """plot_confusion_matrix draws a figure."""
    from grader.kit import drawn

    _, run = drawn(student, "plot_confusion_matrix", class_names)
    if not run.figures:
        raise Mismatch("No figure was drawn.", hint="Draw with matplotlib, seaborn or scikit-learn.")


@pytest.mark.component("plot_classwise_predictions")
def test_predictions_are_drawn(student, class_names):
    """plot_classwise_predictions shows 24 images, 4 per class."""
    from grader.kit import drawn, images_within, pictures

    data, run = drawn(student, "plot_classwise_predictions", class_names)
    shown, _ = pictures(run, data)
    if shown == 1:  # a grid of images in one, perhaps
        shown = max(images_within(run, data), 1)
    if not 4 * len(class_names) <= shown <= 4 * len(class_names) + 2:
        raise Mismatch(f"It shows {shown} images instead of {4 * len(class_names)}.")
