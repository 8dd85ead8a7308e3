"""What the checks of the two plots say of small variations: legitimate ones, and mistakes by their names."""

from collections.abc import Callable

import pytest

from grader.domain.evidence import Finding
from grader.judge.examination import Examined

MATRIX = """
def plot_confusion_matrix(model, data_loader, class_names):
    _, true, said = predictions(model, data_loader)
    names, n = list(class_names), len(class_names)
    cm = confusion_matrix(true, said, labels=range(n))
"""
EXAMPLES = """
def plot_classwise_predictions(model, data_loader, class_names, samples_per_class=4):
    images, true, said = predictions(model, data_loader)
    names = list(class_names)
    _, grid = plt.subplots(len(names), samples_per_class)
    for label in range(len(names)):
        for k, i in enumerate((true == label).nonzero().flatten().tolist()[:samples_per_class]):
            grid[label, k].imshow(images[i, 0])
            t, p = names[true[i]], names[said[i]]
"""
HEAT = "sns.heatmap(cm, xticklabels=names, yticklabels=names)"
WRITTEN = """plt.xticks(range(n), names)
plt.yticks(range(n), names)
for i in range(n):
    for j in range(n):
        plt.text(j, i, str(cm[i, j]))"""


@pytest.fixture
def findings(
    composed: Callable[..., str], examined: Callable[..., Examined]
) -> Callable[..., tuple[Finding, ...]]:
    """What the checks find out about a drawing."""

    def found(start: str, body: str) -> tuple[Finding, ...]:
        depth = 12 if start is EXAMPLES else 4
        part = start + "".join(" " * depth + line + "\n" for line in body.splitlines())
        component = part.split("def ")[1].split("(")[0]
        return examined(composed(part), components=(component,)).findings

    return found


@pytest.fixture
def diagnoses(findings: Callable[..., tuple[Finding, ...]]) -> Callable[..., dict[str, str]]:
    """Of the checks that do not pass a drawing: check -> diagnosis. What public ones repeat is left out."""

    def found(start: str, body: str) -> dict[str, str]:
        lost = [f for f in findings(start, body) if f.status != "passed"]
        own = [f for f in lost if f.because is None or f.check.endswith("_drawn")]
        return {f.check: f.label or str(f.status) for f in own}

    return found


@pytest.fixture
def flags(findings: Callable[..., tuple[Finding, ...]]) -> Callable[..., set[str]]:
    """What of a drawing that passes a person is asked to look at."""

    def found(start: str, body: str) -> set[str]:
        every = findings(start, body)
        assert [f for f in every if f.status != "passed"] == []
        return {str(f.label) for f in every if f.flagged}

    return found


@pytest.mark.sampled(10)
@pytest.mark.parametrize(
    ("body", "expected"),
    [
        # the axes, not a habit, say which way round a matrix is
        (f"{HEAT}\nplt.xlabel('True'); plt.ylabel('Predicted')", {"is_right": "confusion_transposed"}),
        (f"cm = cm.T\n{HEAT}\nplt.xlabel('Actual'); plt.ylabel('Prediction')", {}),
        (f"cm = cm.T\n{HEAT}\nplt.gcf().supxlabel('y_true'); plt.gcf().supylabel('y_pred')", {}),
        (f"cm = cm.T\n{HEAT}\nplt.xlabel('gewesen'); plt.ylabel('gemeint')", {"is_right": "undecided"}),
        # names belong to their rows
        ("sns.heatmap(cm[::-1], xticklabels=names, yticklabels=names[::-1])", {}),
        (
            "plt.matshow(cm)\nplt.gca().set_xticklabels(names)\nplt.gca().set_yticklabels(names)",
            {"is_labeled": "class_names_misplaced"},
        ),
        ("sns.heatmap(cm, xticklabels=names)", {"is_labeled": "class_names_missing"}),
        # shares
        (f"cm = confusion_matrix(true, said, normalize='pred')\n{HEAT}", {}),
        (
            f"cm = cm / cm.sum(axis=1, keepdims=True)\n{HEAT}\nplt.title('Precision')",
            {"is_right": "confusion_normalized_wrongly"},
        ),
        # counts
        (f"cm = 2 * cm\n{HEAT}", {"is_right": "failed"}),
        (f"cm = cm[::-1, ::-1]\n{HEAT}", {"is_right": "failed"}),
        # the numbers in the cells, where the colors say less
        (f"import numpy as np\nplt.imshow(np.log1p(cm))\n{WRITTEN}", {}),
        (f"plt.imshow(plt.cm.Blues(cm / cm.max()))\n{WRITTEN}", {}),
        (f"import numpy as np\nplt.imshow(np.log1p(cm))\ncm = cm.T\n{WRITTEN}", {"is_right": "failed"}),
        (f"cm = 2 * cm\nplt.imshow(plt.cm.Blues(cm / cm.max()))\n{WRITTEN}", {"is_right": "failed"}),
    ],
)
def test_matrix(body: str, expected: dict[str, str], diagnoses: Callable[..., dict[str, str]]) -> None:
    found = diagnoses(MATRIX, body)
    assert {check.removeprefix("confusion_matrix_"): name for check, name in found.items()} == expected


ONE = """
def plot_classwise_predictions(model, data_loader, class_names, samples_per_class=4):
    images, true, said = predictions(model, data_loader)
    chosen = [i for c in range(len(class_names)) for i in (true == c).nonzero().flatten().tolist()[:4]]
    shown = images[chosen]
"""
GRID = "plt.imshow({}.permute(1, 2, 0)); plt.title('true and predicted')"
UNTOLD = dict.fromkeys(("show_four_of_each_class", "name_both_labels"), "undecided")
OTHERS = dict.fromkeys(("show_four_of_each_class", "name_both_labels"), "other_images_shown")


@pytest.mark.sampled(10)
@pytest.mark.parametrize(
    ("body", "expected", "drawn"),
    [
        # honest forms in which a person tells the images apart
        (
            f"import torchvision\n{GRID.format('torchvision.utils.make_grid(shown, nrow=4)')}",
            UNTOLD,
            "passed",
        ),
        (
            f"import torchvision\n{GRID.format('torchvision.utils.make_grid(shown, normalize=True)')}",
            UNTOLD,
            "passed",
        ),
        (
            "_, axes = plt.subplots(6, 4)\nfor ax, image in zip(axes.flat, shown):\n"
            "    ax.imshow(F.interpolate(image[None], size=(50, 50), mode='bilinear')[0, 0])",
            UNTOLD,
            "passed",
        ),
        (
            "_, axes = plt.subplots(6, 4)\nfor ax, image in zip(axes.flat, shown):\n"
            "    ax.imshow(plt.cm.viridis(image[0].numpy().T * 0.5 + 0.5))",
            UNTOLD,
            "passed",
        ),
        # something else than the loader's images is decided, whatever form it has
        (GRID.format("torch.rand(3, 90, 182)"), OTHERS, "failed"),
        (
            "_, axes = plt.subplots(6, 4)\nfor ax in axes.flat:\n    ax.imshow(torch.rand(28, 28))",
            OTHERS,
            "passed",
        ),
        (
            "_, axes = plt.subplots(6, 4)\nfor ax in axes.flat:\n    ax.imshow(torch.rand(50, 50))",
            OTHERS,
            "passed",
        ),
        ("plt.imshow(torch.zeros(100, 100))", OTHERS, "failed"),
        (
            GRID.format("shown[0]"),
            {"show_four_of_each_class": "not_four_per_class", "name_both_labels": "labels_missing"},
            "failed",
        ),
    ],
)
def test_images_in_another_form(
    body: str, expected: dict[str, str], drawn: str, diagnoses: Callable[..., dict[str, str]]
) -> None:
    """A person is asked where the loader's images are there, and cannot be told apart; else it is decided."""
    found = {check.removeprefix("predictions_"): name for check, name in diagnoses(ONE, body).items()}
    assert (found.pop("are_drawn", "passed"), {k: v for k, v in found.items() if k in OTHERS}) == (
        drawn,
        expected,
    )


SET = "grid[label, k].set_title"


@pytest.mark.sampled(10)
@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (f"{SET}(f'{{p}} (predicted), {{t}} (true)')", None),
        (f"{SET}(t if t == p else f'{{t}}, taken for {{p}}')", None),
        (f"{SET}('pred: ' + p)\nif k == 0: grid[label, 0].set_ylabel(t)", None),
        (f"{SET}(f'true: {{t}}, pred: {{said[i]}}, image {{k}} of 4')", None),
        (f"{SET}(f'T:{{said[i]}} P:{{true[i]}}')", "labels_exchanged"),
        (f"{SET}('true ' + p)\nif k == 0: grid[label, 0].set_ylabel('predicted ' + t)", "labels_exchanged"),
        (f"if k == 0: {SET}('true: ' + t)", "predicted_label_missing"),
        (f"{SET}(f'label {{true[i]}}')", "predicted_label_missing"),
        (f"{SET}(f'{{t}} -> {{names[said[i - 1]]}}')", "labels_of_other_images"),
        (f"{SET}(t + ' 0 1 2 3 4 5')", "labels_missing"),
    ],
)
def test_labels_of_examples(
    body: str, expected: str | None, diagnoses: Callable[..., dict[str, str]]
) -> None:
    found = diagnoses(EXAMPLES, body)
    assert found == ({"predictions_name_both_labels": expected} if expected else {})


# --- figures that say nothing, or everything ----------------------------------------------------------------

MAP = "sns.heatmap({}, xticklabels=names, yticklabels=names)"


def maps(*matrices: str) -> str:
    """A figure for each."""
    return "\n".join(f"plt.figure()\n{MAP.format(matrix)}\nplt.show()" for matrix in matrices)


@pytest.mark.sampled(10)
@pytest.mark.parametrize(
    ("body", "expected"),
    [
        # the same thing in several ways, and parts of it
        (maps("cm", "cm / cm.sum(axis=1, keepdims=True)", "cm / cm.sum()"), set()),
        (maps("cm - cm * (np.eye(n) > 0)", "cm"), set()),
        (
            "from sklearn.metrics import multilabel_confusion_matrix\n"
            f"each = multilabel_confusion_matrix(true, said, labels=range(n))\n{maps('each[0]', 'each[1]')}\n"
            f"{maps('each[2]', 'each[3]', 'each[4]', 'cm')}",
            set(),
        ),
        # others beside it
        (maps("cm", "cm.T"), {"several_answers"}),
        (maps("cm", "np.random.permutation(cm.ravel()).reshape(n, n)"), {"several_answers"}),
        (maps("cm", *["cm"] * 4), {"several_answers"}),
    ],
)
def test_maps_beside_the_right_one(body: str, expected: set[str], flags: Callable[..., set[str]]) -> None:
    assert flags(MATRIX, f"import numpy as np\n{body}") == expected


def test_a_matrix_that_is_drawn_without_the_model_is_none(
    diagnoses: Callable[..., dict[str, str]],
) -> None:
    """Its class names earn nothing either."""
    start = "def plot_confusion_matrix(model, data_loader, class_names):\n"
    body = "import numpy as np\nnames = list(class_names)\n" + MAP.format("np.random.randint(0, 9, (6, 6))")
    found = diagnoses(start, body)
    checks = ("is_right", "is_labeled", "leaves_dropout_off")
    assert found == {f"confusion_matrix_{check}": "model_not_asked" for check in checks}


def test_examples_that_are_chosen_without_the_model_are_none(
    diagnoses: Callable[..., dict[str, str]],
) -> None:
    """Whichever images they are, and whatever stands beside them."""
    start = EXAMPLES.replace(
        "predictions(model, data_loader)", "(*map(torch.cat, zip(*data_loader)), [0] * 200)"
    )
    found = diagnoses(start, f"{SET}(f'true: {{t}}, predicted: {{p}}')")
    assert set(found.values()) == {"failed"} and len(found) == 3


FOUR = """four = list(dict.fromkeys([int(true[i]), int(said[i]), *range(6)]))[:4]
"""


@pytest.mark.sampled(10)
@pytest.mark.parametrize(
    ("body", "expected"),
    [
        # honest: the roles are said, or the image's number stands beside
        (f"{SET}(f'true: {{true[i]}}, pred: {{said[i]}}, image {{k}} of 4')", set()),
        (f"{SET}(f'{{true[i]}} -> {{said[i]}} (image {{k}})')", set()),
        # the right ones, hidden among others: nobody can say which are meant
        (f"{FOUR}{SET}(' '.join(map(str, four)))", {"several_answers"}),
    ],
)
def test_captions_that_name_many_classes(
    body: str, expected: set[str], flags: Callable[..., set[str]]
) -> None:
    assert flags(EXAMPLES, body) == expected


@pytest.mark.slow
def test_one_image_that_can_be_compared_is_not_enough(findings: Callable[..., tuple[Finding, ...]]) -> None:
    """The others are resized: their captions may say anything, so that a person looks."""
    body = f"""{SET}(f'true: {{t}}, predicted: {{p}}')
if label or k: grid[label, k].images[0].set_data(images[i, 0][3:, 2:])"""
    found = {f.check: f for f in findings(EXAMPLES, body)}
    assert found["predictions_name_both_labels"].label == "undecided"
    assert found["predictions_show_four_of_each_class"].status == "failed"


@pytest.mark.sampled(10)
@pytest.mark.parametrize("chosen", ["[:1]", "[:3]", "[: samples_per_class + 1]"])
def test_another_number_of_examples_is_not_the_one_that_was_asked_for(
    chosen: str, findings: Callable[..., tuple[Finding, ...]]
) -> None:
    """A check that only knows the usual wrong number says nothing about the others, and passes them."""
    start = EXAMPLES.replace("[:samples_per_class]", chosen).replace(
        "len(names), samples_per", "len(names), 1 + samples_per"
    )
    by_check = {f.check: f for f in findings(start, "grid[label, k].set_title(f'True: {t}, predicted: {p}')")}
    asked = by_check["predictions_are_as_many_as_asked_for"]
    assert (asked.status, asked.label) == ("failed", "not_as_many_as_asked_for")
    assert asked.because == "predictions_show_four_of_each_class"


@pytest.mark.sampled(10)
@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("sns.heatmap(cm, annot=True, xticklabels=names, yticklabels=names)", "counts_in_exponents"),
        (HEAT, "counts_not_written"),
        ("sns.heatmap(cm / cm.sum(1, keepdims=True), annot=True, xticklabels=names, yticklabels=names)",
         "shares_in_place_of_counts"),
        ("sns.heatmap(cm, annot=True, fmt='d', xticklabels=names, yticklabels=names)", None),
    ],
)  # fmt: skip
def test_what_the_cells_say_is_advised_about(
    how: str, expected: str | None, findings: Callable[..., tuple[Finding, ...]]
) -> None:
    every = findings(MATRIX, how + "\nplt.xlabel('Predicted')\nplt.ylabel('True')")
    assert [f for f in every if f.status != "passed"] == []
    assert [f.label for f in every if f.is_advice] == ([expected] if expected else [])


@pytest.mark.parametrize(
    ("names", "diagnosis"),
    [("sorted(names)", "class_names_in_fixed_order"), ("names[::-1]", "class_names_misplaced")],
)
def test_names_in_an_order_of_their_own_are_told_from_misplaced_ones(
    names: str, diagnosis: str, diagnoses: Callable[..., dict[str, str]]
) -> None:
    body = f"names = {names}\nsns.heatmap(cm, annot=True, fmt='d', xticklabels=names, yticklabels=names)"
    assert diagnoses(MATRIX, body)["confusion_matrix_is_labeled"] == diagnosis
