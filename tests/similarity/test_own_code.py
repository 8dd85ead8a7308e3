"""How much two students' own code has in common: copies in disguise, and solutions that are independent."""

import itertools

import pytest

from grader.similarity.compared_pairs import ENOUGH, THRESHOLD, passages, shares


def test_a_copy_in_disguise_is_found(solutions, own_of):
    """All names changed, reordered, reformatted, without comments, as a notebook: it is the same code."""
    for seed, choice in enumerate(
        [dict.fromkeys(solutions.PARTS, "reference"), *solutions.choices(4, seed=3)]
    ):
        text = solutions.solution(choice)
        copy = solutions.disguised(text, seed)
        assert copy != text
        assert "class_token" not in copy
        for name, written in (("b.py", copy), ("b.ipynb", solutions.as_notebook(copy))):
            found = shares(own_of(text), own_of(written, name))
            assert min(found.one, found.other) > 0.9, (choice, name, found)


@pytest.mark.slow
def test_independent_solutions_stay_far_below_the_threshold(solutions, own_of):
    """The figures in docs/ta/similar.md: measured over the legitimate forms, whatever their names."""
    made = [(choice, own_of(solutions.solution(choice))) for choice in solutions.choices(30, seed=5)]
    most = {0: 0.0, 1: 0.0}
    for (a, one), (b, other) in itertools.combinations(made, 2):
        alike = sum(a[part] == b[part] for part in a)
        if alike in most:
            most[alike] = max(most[alike], shares(one, other).most)
    assert most[0] < 0.15
    assert most[1] < 0.45 < THRESHOLD


def test_a_copied_part_of_a_larger_work_is_found(solutions, own_of):
    """Who has only the model, and has all of it from there."""
    whole = solutions.reference()
    model = whole[: whole.index("# ## 4. Training")]
    found = shares(own_of(model), own_of(solutions.disguised(whole)))
    assert found.one > 0.9
    assert found.other < found.one


def test_the_bare_template_is_no_pair(solutions, own_of):
    """Nothing of it is the students' own, as a script or as a notebook."""
    text = solutions.template()
    assert own_of(text).size == own_of(solutions.as_notebook(text), "a.ipynb").size == 0
    assert shares(own_of(text), own_of(text)).most == 0


def test_trivial_lines_are_no_pair(solutions, own_of):
    """Two who wrote what can hardly be written otherwise."""
    lines = (
        "def size(net):\n    return sum(p.numel() for p in net.parameters() if p.requires_grad)\n"
        "print(size(model), max(test_loss_history), min(train_loss_history), len(test_set), len(train_set))\n"
        "print(round(max(test_loss_history), 2), round(min(train_loss_history), 3), abs(N_EPOCHS))\n"
    )
    side = own_of(solutions.template() + lines)
    assert 0 < side.size < ENOUGH
    assert shares(side, side).most == 0
    assert shares(side, own_of(solutions.reference() + lines)).most == 0


def test_passages_pair_functions_whatever_their_order(solutions, own_of):
    """Each function is held against the one that it came from, line by line."""
    text = solutions.reference()
    copy = solutions.disguised(text, seed=2)
    lines, copied = text.split("\n"), copy.split("\n")
    found = passages(own_of(text), own_of(copy))
    joined = [
        ("\n".join(lines[n - 1] for _, n in one.one), "\n".join(copied[n - 1] for _, n in one.other))
        for one in found
    ]
    assert len(found) > 8
    (attention,) = [pair for pair in joined if "scores.softmax" in pair[0]]
    assert "softmax" in attention[1]
    (loop,) = [pair for pair in joined if "label_smoothing" in pair[0]]
    assert ".backward()" in loop[1]


def test_a_function_is_held_against_the_one_with_most_in_common(own_of):
    """Not against an earlier one that shares a line or two with it."""
    head = "    total = sum(len(one) + min(one) + max(one) for one in sorted(rows, key=len)[1:-1])\n"
    rest = "    table = {key: [abs(cell) for cell in rows[key] if cell is not None] for key in total}\n"
    found = passages(
        own_of(f"def whole(rows):\n{head}{rest}    return table\n"),
        own_of(
            f"def first(rows):\n{head}    return total\ndef second(rows):\n{head}{rest}    return table\n"
        ),
    )
    assert [{line for _, line in one.other} & {2, 5, 6} for one in found] == [{5, 6}]
