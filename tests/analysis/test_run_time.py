"""What was used at run time is told unless the same part, with the same cost, is shown."""

from dataclasses import replace
from typing import Any

import pytest

from grader.analysis.forbidden_uses import run_time_uses
from grader.domain.analyzed_program import LOADING, TRAINING, ForbiddenUse, Place, Program
from grader.domain.assignment import Assignment
from grader.domain.assignment_rules import ForbiddenRule
from grader.domain.program_run import ReachedPart

MHA, CORE, LAYER = (
    "torch.nn.MultiheadAttention",
    "torch.nn.functional.scaled_dot_product_attention",
    "torch.nn.TransformerEncoderLayer",
)
LINE, DEFINED = Place("homework.py", 8), Place("homework.py", 2)
PROGRAM = Program("homework.py", defined={"Attention": DEFINED})


def reached(
    name: str, *patterns: str, inside: str = "", within: Any = (), stage: str = "Attention"
) -> ReachedPart:
    return ReachedPart(name, patterns or (name,), inside, within, stage, LINE)


def shown(name: str, rule: str = "", *reached_from: str) -> ForbiddenUse:
    return ForbiddenUse(rule or name, name, LINE, reached_from or ("Attention",))


def told(assignment: Assignment, shown: Any, *parts: ReachedPart) -> list[tuple[str, str, Any]]:
    found = run_time_uses(assignment, PROGRAM, shown, parts)
    return [(use.rule, use.name, use.reached_from) for use in found]


def test_what_nothing_shows_is_told_with_its_line(assignment: Assignment) -> None:
    [use] = run_time_uses(assignment, PROGRAM, (), (reached(MHA), reached(MHA, stage="ViT")))
    assert use == ForbiddenUse(MHA, MHA, LINE, ("Attention", "ViT"))


def test_without_a_line_it_is_told_where_the_component_is(assignment: Assignment) -> None:
    part = replace(reached(MHA), place=None)
    [first] = run_time_uses(assignment, PROGRAM, (), (part,))
    [other] = run_time_uses(assignment, PROGRAM, (), (replace(part, stage=LOADING),))
    assert (first.place, other.place) == (DEFINED, Place("homework.py", 1))
    assert other.reached_from == ("the model",)


@pytest.mark.parametrize(
    "name",
    [
        MHA,
        "torch.nn.modules.activation.MultiheadAttention",
        f"{MHA}.forward",
        "torch.nn.modules.MultiheadAttention",
    ],
)
def test_the_same_part_is_told_once(assignment: Assignment, name: str) -> None:
    assert told(assignment, [shown(name, MHA)], reached(MHA)) == []


def test_a_flag_hides_no_cost(assignment: Assignment) -> None:
    """The core of attention is only flagged: beside it, the forbidden part still costs."""
    assert told(assignment, [shown(CORE)], reached(CORE), reached(MHA)) == [(MHA, MHA, ("Attention",))]


def test_one_part_hides_no_other(assignment: Assignment) -> None:
    function = "torch.nn.functional.multi_head_attention_forward"
    assert told(assignment, [shown(MHA)], reached(function)) == [(function, function, ("Attention",))]


@pytest.mark.parametrize("where", [(), (TRAINING,)])
def test_what_no_graded_name_reaches_hides_nothing(assignment: Assignment, where: Any) -> None:
    use = ForbiddenUse(MHA, MHA, LINE, where)
    assert told(assignment, [use], reached(MHA)) == [(MHA, MHA, ("Attention",))]


def test_of_several_patterns_with_one_cost_the_first_counts(assignment: Assignment) -> None:
    part = reached(MHA, "torch.nn.modules.MultiheadAttention", MHA, CORE)
    assert told(assignment, [], part) == [(MHA, MHA, ("Attention",)), (CORE, MHA, ("Attention",))]


def test_the_inside_of_a_part_that_costs_as_much_is_not_told(assignment: Assignment) -> None:
    within = ("torch.nn.Transformer*",)
    parts = [reached(MHA, inside=LAYER, within=within), reached(CORE, inside=MHA, within=(MHA,))]
    assert told(assignment, [], *parts) == []


def test_the_inside_of_a_part_that_costs_nothing_is_told_as_that(assignment: Assignment) -> None:
    allowed = ForbiddenRule("torch.nn.Transformer*", "flag", "model", "Have a look.")
    rules = tuple(allowed if rule.pattern == allowed.pattern else rule for rule in assignment.forbidden)
    other = replace(assignment, forbidden=rules)
    part = reached(MHA, inside=LAYER, within=("torch.nn.Transformer*",))
    [use] = run_time_uses(other, PROGRAM, (), (part,))
    assert (use.rule, use.inside) == (MHA, LAYER)


def test_what_training_uses_is_the_trainings(assignment: Assignment) -> None:
    training = reached(MHA, stage=TRAINING)
    assert told(assignment, [], training) == [(MHA, MHA, (TRAINING,))]
    assert told(assignment, [], training, reached(MHA)) == [(MHA, MHA, ("Attention",))]
    assert told(assignment, [shown(MHA)], training) == []
    assert told(assignment, [shown(MHA, MHA, TRAINING)], training) == []
