from grader.domain.evidence import LayerSummary
from grader.reports.student.model_figures import layer_rows


def test_a_module_counts_all_below_it(examples):
    rows = layer_rows(examples.layers())
    assert rows[0].name == "ViT" and rows[0].whole == 499_462
    blocks = [row for row in rows if row.depth == 3]
    assert [row.whole for row in blocks] == [82_432] * 6
    assert sum(row.own for row in rows) == 499_462


def test_siblings_are_kept_apart_and_the_order_stays():
    layers = (
        LayerSummary("", "Net", 1, 0),
        LayerSummary("a", "Block", 0, 1),
        LayerSummary("a.x", "Linear", 10, 2),
        LayerSummary("b", "Linear", 100, 1),
    )
    assert [(row.name, row.whole) for row in layer_rows(layers)] == [
        ("Net", 111),
        ("a", 10),
        ("x", 10),
        ("b", 100),
    ]
    assert layer_rows(()) == ()
