"""Which pairs of a class are listed, and in what order."""

import pytest

from grader.similarity.compared_pairs import compared
from grader.similarity.compared_work import Work
from grader.similarity.normalized_code import read_code
from grader.similarity.pictures import notebook_figures


@pytest.fixture
def work(solutions):
    """A submission, with code of a solution or without."""

    def of(student_id, choice=None, copy=False, **parts):
        code = None
        if choice is not None:
            text = solutions.solution(choice)
            code = read_code("a.py", (solutions.disguised(text) if copy else text).encode())
        return Work(student_id, code=code, **parts)

    return of


@pytest.fixture
def figures(picture, in_base64):
    """Pictures as a notebook has them."""

    def of(*seeds):
        cells = ", ".join(
            f'{{"outputs": [{{"data": {{"image/png": "{in_base64(picture(seed))}"}}}}]}}' for seed in seeds
        )
        return tuple(notebook_figures(f'{{"cells": [{cells}]}}'.encode()))

    return of


def ids(comparison):
    """The pairs, by their ids."""
    return [(pair.one.student_id, pair.other.student_id) for pair in comparison.pairs]


def test_the_copy_is_listed_and_nobody_else(work, solutions, given):
    """Whatever the order of the submissions."""
    first, *others = solutions.apart(3)
    works = [
        work("1", first),
        work("2", first, copy=True),
        *(work(str(3 + i), c) for i, c in enumerate(others)),
    ]
    one, other = compared(works, given=given), compared(works[::-1], given=given)
    assert ids(one) == ids(other) == [("1", "2")]
    assert one == other
    assert one.pairs[0].passages
    assert len(one.scores) == 6
    assert one.scores[-2] < 0.2


def test_last_year_is_compared_with_this_year_only(work, solutions, given):
    """And nobody with themselves."""
    choice = solutions.apart(1)[0]
    works = [
        work("1", choice),
        work("1", choice, before=True),
        work("8", choice, before=True),
        work("9", choice, before=True),
    ]
    found = compared(works, given=given)
    assert ids(found) == [("1", "8"), ("1", "9")]
    assert found.groups() == (("1", "8 (before)", "9 (before)"),)
    assert found.scores == ()


def test_a_figure_that_few_have_makes_a_pair(work, figures, given):
    """Not one that a third of the class has, nor one that was handed out."""
    everybody, handed_out = figures(100), figures(200)
    works = [work(str(i), figures=(*figures(i), *everybody, *handed_out[: i < 2])) for i in range(6)]
    assert compared(works, given=given, given_figures={handed_out[0].digest}).pairs == ()
    works[5] = work("5", figures=(*figures(3), *everybody))
    found = compared(works, given=given, given_figures={handed_out[0].digest})
    assert ids(found) == [("3", "5")]
    assert len(found.pairs[0].figures) == 1


def test_who_has_no_figures_does_not_make_a_common_one_rare(work, figures, given):
    """Notebooks keep a plot of the data; most of the class handed in scripts."""
    works = [work(str(i), figures=figures(100, i) if i < 4 else ()) for i in range(16)]
    assert compared(works, given=given).pairs == ()


def test_identical_checkpoints_come_before_near_ones(work, weights_of, state, given):
    """And different ones are not a pair."""
    mine = state(1)
    near = {key: value * 1.01 for key, value in mine.items()}
    works = [
        work("1", weights=weights_of(mine)),
        work("2", weights=weights_of(near)),
        work("3", weights=weights_of({f"n.{key}": value for key, value in mine.items()})),
        work("4", weights=weights_of(state(2))),
    ]
    assert ids(compared(works, given=given)) == [("1", "3"), ("1", "2"), ("2", "3")]


def test_who_is_left_out_is_told(work, solutions, given):
    """An empty own part, and what could not be read."""
    template = Work("1", code=read_code("a.py", solutions.template().encode()))
    found = compared([template, work("2", left_out=("It could not be read.",))], given=given)
    assert found.pairs == ()
    told = {one.student_id: sentence for one, sentence in found.left_out}
    assert "no code of the student's own" in told["1"]
    assert told["2"] == "It could not be read."


def test_nobody_and_one(work, given):
    """Nothing to compare is not an error."""
    assert compared([], given=given).pairs == ()
    assert compared([work("1")], given=given).pairs == ()


def test_who_may_work_together_is_no_pair(work, weights_of, state, given):
    """A whole class in groups would leave no room for the pairs that somebody should look at."""
    works = [work(student, weights=weights_of(state(1))) for student in ("1", "2", "3")]
    group = frozenset({"1", "2"})
    found = compared(works, given=given, together={"1": group, "2": group})
    assert ids(found) == [("1", "3"), ("2", "3")]
