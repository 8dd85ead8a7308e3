"""What the checks of the two plots say of small variations: legitimate ones, and mistakes by their names."""

from collections.abc import Callable

import pytest

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


@pytest.fixture
def diagnoses(
    composed: Callable[..., str], examined: Callable[..., Examined]
) -> Callable[..., dict[str, str]]:
    """Of the checks that do not pass a drawing: check -> diagnosis."""

    def found(start: str, body: str) -> dict[str, str]:
        depth = 4 if start is MATRIX else 12
        part = start + "".join(" " * depth + line + "\n" for line in body.splitlines())
        component = part.split("def ")[1].split("(")[0]
        findings = examined(composed(part), components=(component,)).findings
        return {f.check: f.diagnosis or str(f.status) for f in findings if f.status != "passed"}

    return found


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
    ],
)
def test_matrix(body: str, expected: dict[str, str], diagnoses: Callable[..., dict[str, str]]) -> None:
    found = diagnoses(MATRIX, body)
    assert {check.removeprefix("confusion_matrix_"): name for check, name in found.items()} == expected


SET = "grid[label, k].set_title"


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
