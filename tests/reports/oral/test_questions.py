"""Questions are about what is there: a student's own lines, sizes, curves, values and mistakes."""

from dataclasses import replace
from pathlib import Path

import pytest

from grader.analysis import program
from grader.course.assignment_file import read_assignment
from grader.course.editions import edition_of, edition_text
from grader.course.reference_solution import solved_source
from grader.domain.analyzed_program import Claim, NearName, Place, TunedValue
from grader.domain.evidence import Blame, Evidence, FindingKind, Status
from grader.domain.oral_check import OralQuestion
from grader.domain.program_run import Plan, Rehearsal, Stage
from grader.reports.oral.chosen_questions import COUNT, MOST_LINES, QuestionKind, SheetQuestion, five
from grader.reports.oral.code_questions import (
    assigned_questions,
    chosen_numbers,
    layer_questions,
    line_questions,
)
from grader.reports.oral.own_code import beginning, code_beside, own_parts
from grader.reports.oral.training_questions import choice_questions, error_questions, result_questions

REFERENCE = Path(__file__).parents[3] / "reference"


@pytest.fixture
def good(class_results):
    return class_results["good"].evidence


def with_losses(evidence, *losses):
    """The evidence in which the test loss took this course, and the accuracy rose and fell with it."""
    epoch = evidence.training.epochs[0]
    epochs = tuple(
        replace(epoch, number=number, test_loss=loss, test_accuracy=max(0.0, 1 - loss / 2))
        for number, loss in enumerate(losses, 1)
    )
    return replace(evidence, training=replace(evidence.training, epochs=epochs))


def ids(questions):
    return {question.id.split(" ", 1)[-1] for question in questions}


# --- code ------------------------------------------------------------------------------------------------


def test_parts_are_found_with_their_statements(assignment, good):
    parts = {part.component: part for part in own_parts(assignment, good)}
    assert {"PreNorm", "FeedForward", "Attention", "evaluate"} == set(parts)
    attention = parts["Attention"]
    assert attention.defaults == {"heads": 4, "dim_head": 64}
    softmax = next(line for line in attention.statements if "softmax" in line.calls)
    assert softmax.axes == (("softmax", "dim=-1"),)
    [shown] = code_beside(good, softmax.place, softmax.last_line)
    assert (shown.text, shown.number) == ("weights = scores.softmax(dim=-1)", softmax.place.line)
    first = beginning(good, attention)
    assert first[0].text.startswith("class Attention") and len(first) == MOST_LINES


SOURCES = {
    "of cells with magics": {
        "In [1], cell 1": "%matplotlib inline\n!pip install x\ndef f(x):\n    return x.sum(dim=1)\n"
    },
    "defined again": {
        "a.py": "def f(x):\n    return x.mean()\n",
        "b.py": "def f(x):\n    return x.sum(dim=1)\n",
    },
    "in loops": {"a.py": "def f(x):\n    for y in x:\n        with y:\n            return x.sum(dim=1)\n"},
    "beside broken cells": {
        "In [1], cell 1": "def f(:\n",
        "In [2], cell 2": "def f(x):\n    return x.sum(dim=1)\n",
    },
    "beside hostile ones": {"a.py": "(" * 5000, "b.py": "def f(x):\n    return x.sum(dim=1)\n"},
}


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_what_is_no_python_hides_nothing_else(assignment, good, source):
    only = replace(assignment, components=(replace(assignment.components[0], name="f"),))
    [part] = own_parts(only, replace(good, source=source))
    assert [line.text for line in part.statements] == ["return x.sum(dim=1)"]


def test_stubs_and_docstrings_are_no_work(assignment, good):
    text = 'class Attention(nn.Module):\n    """A docstring."""\n    def __init__(self):\n'
    text += '        super().__init__()\n        raise NotImplementedError("TODO")\n'
    assert own_parts(assignment, replace(good, source={"a.py": text})) == ()


def test_a_part_under_a_near_name_is_asked_about_by_the_students_name(assignment, good):
    source = {
        "a.py": "class Atention(nn.Module):\n    def forward(self, x):\n        return x.softmax(dim=-1)\n"
    }
    near = (NearName("Attention", "Atention", Place("a.py", 1)),)
    evidence = replace(good, source=source, near_names=near)
    [part] = own_parts(assignment, evidence)
    assert (part.component, part.name) == ("Attention", "Atention")
    assert all("`Atention`" in question.text for question in line_questions(evidence, [part], "s"))


def test_lines_are_chosen_by_the_seed_and_each_part_has_some(assignment, good):
    parts = own_parts(assignment, good)
    seen = {tuple(question.id for question in line_questions(good, parts, seed)) for seed in "abcdef"}
    assert len(seen) > 1
    first = list(line_questions(good, parts, "a"))
    assert first == list(line_questions(good, parts, "a"))
    assert {question.topic for question in first} == {part.component for part in parts}
    axes = [question for question in first if question.id.startswith("axis")]
    assert any(
        "`softmax(dim=-1)`" in question.text or "`chunk(dim=-1)`" in question.text for question in axes
    )


def test_layers_are_asked_about_with_their_numbers(good):
    texts = [question.text for question in layer_questions(good)]
    assert any(
        "49,152 of them are in `transformer.layers.0.0.fn.to_qkv` (`Linear`)" in text for text in texts
    )
    assert len(texts) == len(set(texts)) < len(good.layers), "equal layers once"
    assert list(layer_questions(replace(good, parameters=None))) == []


# --- questions of an assignment --------------------------------------------------------------------------


SIZES = OralQuestion(
    id="sizes",
    text="Your {part} has {heads} heads. What comes out?",
    note="(16, {heads}, {tokens}).",
    component="Attention",
    calls=("softmax",),
    values=(("tokens", "(image_size // patch_size) ** 2 + 1"),),
)


def asked(assignment, evidence, question, mistakes=()):
    brought = replace(assignment, oral_questions=(question,))
    return list(assigned_questions(brought, evidence, own_parts(brought, evidence), mistakes))


def chosen(evidence, **values):
    place = Place("homework.py", 5)
    return replace(evidence, tuned=tuple(TunedValue(name, value, place) for name, value in values.items()))


def test_an_assignments_question_has_the_students_numbers_and_line(assignment, good):
    [question] = asked(assignment, chosen(good, image_size="28 x 28", patch_size="4", heads="8"), SIZES)
    assert question.text == "Your `Attention` has 8 heads. What comes out?"
    assert question.note == "(16, 8, 50)."
    assert [line.text for line in question.lines] == ["weights = scores.softmax(dim=-1)"]
    [default] = asked(assignment, chosen(good, image_size="28", patch_size="7"), SIZES)
    assert default.note == "(16, 4, 17).", "the default of the student's own definition"


@pytest.mark.parametrize(
    "values",
    [
        {"image_size": "28"},
        {"image_size": "28 x 32", "patch_size": "4"},
        {"image_size": "28", "patch_size": "0"},
        {"image_size": "28", "patch_size": "SIZE"},
        {"image_size": "28", "patch_size": "9" * 40},
        {"image_size": "28", "patch_size": "4", "heads": "config.heads"},
    ],
)
def test_it_is_not_asked_if_a_number_is_not_known(assignment, good, values):
    assert asked(assignment, chosen(good, **values), SIZES) == []


def test_it_is_not_asked_without_its_part_line_or_mistake(assignment, good):
    evidence = chosen(good, image_size="28", patch_size="4")
    assert asked(assignment, evidence, replace(SIZES, calls=("einsum",))) == []
    assert asked(assignment, evidence, replace(SIZES, component="ViT")) == []
    after = replace(SIZES, after=("missing_scale",))
    assert asked(assignment, evidence, after) == []
    assert len(asked(assignment, evidence, after, {"missing_scale"})) == 1


def test_what_is_computed_stands_before_what_was_chosen(assignment, good):
    computed = replace(SIZES, values=(("heads", "dim // missing"), ("tokens", "2")))
    assert asked(assignment, chosen(good, heads="8"), computed) == []


def test_lines_are_cut_to_the_paper_and_hide_nothing(good):
    line = "x" * 300 + "\u202e"
    evidence = replace(good, source={"a.py": f"    {line}\n    \u200by = 1\n"})
    cut, other = code_beside(evidence, Place("a.py", 1), 2)
    assert cut.text == "x" * 100 + " …" and other.text == "⟨U+200B⟩y = 1"
    assert code_beside(evidence, Place("a.py", 7), 9) == () == code_beside(evidence, Place("b.py", 1), 9)


def test_numbers_are_literals_of_a_sensible_size(good):
    evidence = chosen(good, dim="64", rate="0.1", many="1" * 30, sides="8 x 8", word="dim", arabic="٣")
    assert chosen_numbers(evidence, [{"rate": 3, "depth": 2}]) == {"dim": 64, "sides": 8, "depth": 2}


@pytest.mark.parametrize("name", ["vit_defects", "vit_cifar10", "vit_finetune"])
def test_each_question_of_an_assignment_fits_its_reference(name):
    """None is dead: on the solution all of them are asked, with code wherever they are about a part."""
    folder = REFERENCE / name
    assignment = read_assignment(folder)
    text = edition_text((folder / "solution.py").read_text("utf-8"), edition_of(folder), "solution.py")
    read = program("homework.py", solved_source(text, "solution.py").encode(), assignment.program_rules)
    evidence = replace(
        Evidence("1", name, "ab12", graded_at=None),
        source=read.source,
        tuned=read.tuned,  # type: ignore[arg-type]
    )
    mistakes = {mistake for question in assignment.oral_questions for mistake in question.after}
    found = {
        question.id.removeprefix("assigned "): question
        for question in assigned_questions(assignment, evidence, own_parts(assignment, evidence), mistakes)
    }
    assert set(found) == {question.id for question in assignment.oral_questions} and len(found) >= 10
    for question in assignment.oral_questions:
        assert bool(found[question.id].lines) == bool(question.component)
        assert "{" not in found[question.id].text + found[question.id].note


# --- training --------------------------------------------------------------------------------------------


def test_a_loss_that_rises_is_asked_about_only_where_it_does(assignment, good):
    rising = with_losses(good, 1.5, 1.0, 0.8, 0.9, 1.0, 1.1)
    [question] = [one for one in result_questions(assignment, rising) if one.id.endswith(" loss")]
    assert "lowest after epoch 3 (0.800) and is 1.100 after epoch 6" in question.text and question.chart
    for losses in ((1.5, 1.0, 0.8, 0.7), (1.5, 1.0, 0.8, 0.84), (0.8, 1.5, 2.0), (float("nan"),) * 6):
        assert "loss" not in ids(result_questions(assignment, with_losses(good, *losses)))


def test_an_accuracy_that_grows_or_falls_is_asked_about_only_where_it_does(assignment, good):
    assert "growth" in ids(result_questions(assignment, with_losses(good, 2.0, 1.5, 1.0, 0.5)))
    assert "jump" in ids(result_questions(assignment, with_losses(good, 1.0, 0.5, 1.2, 0.5, 0.5)))
    flat = ids(result_questions(assignment, with_losses(good, 0.5, 0.5, 0.5, 0.5, 0.5)))
    assert not flat & {"growth", "jump", "loss"}


def test_the_largest_confusion_is_named_both_ways(assignment, good):
    counts = [[0] * 6 for _ in range(6)]
    counts[0], counts[2] = [40, 0, 9, 0, 0, 0], [4, 0, 30, 0, 0, 1]
    training = replace(good.training, confusion=tuple(map(tuple, counts)))
    [question] = [
        one
        for one in result_questions(assignment, replace(good, training=training))
        if one.id.endswith("confusion")
    ]
    assert "takes 9 of 49 hidden images of “crazing” for “patches”" in question.text
    assert "the other way round it is 4 of 35" in question.text
    perfect = replace(training, confusion=tuple(tuple(map(int, row)) for row in ((5, 0), (0, 5))))
    assert "confusion" not in ids(result_questions(assignment, replace(good, training=perfect)))


def test_a_gap_is_asked_about_where_it_is_wide(assignment, good):
    for seen, there in ((0.99, True), (0.9, False), (None, False)):
        training = replace(good.training, seen_accuracy=seen, accuracy=0.85)
        assert ("gap" in ids(result_questions(assignment, replace(good, training=training)))) is there


def test_nothing_is_asked_about_a_training_that_was_not_run(assignment, class_results):
    assert list(result_questions(assignment, class_results["not_trained"].evidence)) == []
    assert list(result_questions(replace(assignment, data=None), class_results["good"].evidence)) == []


def test_values_are_asked_about_as_they_are_written(good):
    questions = {question.id: question for question in choice_questions(good)}
    assert "You chose `depth` as `6`." in questions["value depth"].text
    assert questions["value epochs"].lines[0].text == "N_EPOCHS = 30"
    stage = Stage(None, None, "AdamW", "OneCycleLR", 100, 30, 0.001, 0.00001)
    tried = replace(good, plan=Plan(rehearsal=Rehearsal((stage,))))
    about = next(question for question in choice_questions(tried) if question.id == "stage")
    assert "with `AdamW` and `OneCycleLR`: the learning rate is 0.001 after the first" in about.text
    assert about.topic == questions["value learning_rate"].topic, "one of them is asked"
    constant = replace(stage, schedule="", last_rate=0.001)
    tried = replace(good, plan=Plan(rehearsal=Rehearsal((constant,))))
    about = next(question for question in choice_questions(tried) if question.id == "stage")
    assert "at a learning rate of 0.001. What would you see" in about.text


# --- mistakes --------------------------------------------------------------------------------------------


def failed(evidence, check, **more):
    """The evidence in which a check failed with a message."""
    given = {
        "message": "The scale is missing.",
        "diagnosis": "missing_scale",
        "where": "homework.py:41",
        **more,
    }
    return replace(
        evidence,
        findings=tuple(
            replace(one, status=Status.FAILED, blame=Blame.STUDENT, **given) if one.check == check else one
            for one in evidence.findings
        ),
    )


CHECK = "attention_matches_oracle"


def test_a_mistake_of_an_earlier_submission_is_asked_about_when_it_is_gone(good):
    before = failed(good, CHECK)
    [question] = error_questions(good, [good, before], None)
    assert (
        "In your submission number 2, a check of `Attention` said: “The scale is missing.”" in question.text
    )
    assert ids(error_questions(before, [before], None)) == {CHECK}
    [now] = error_questions(before, [], None)
    assert now.text.startswith("A check of `Attention` says") and now.lines[0].number == 41
    assert list(error_questions(failed(good, CHECK, kind=FindingKind.NOT_IMPLEMENTED), [], None)) == []
    assert list(error_questions(failed(good, CHECK, because="attention_keeps_shape"), [], None)) == []


def test_a_claim_is_asked_about_where_it_differs(good):
    [question] = error_questions(good, [], Claim(0.97, "In [7], cell 12"))
    assert "You report an accuracy of 97.0\N{NO-BREAK SPACE}%" in question.text and "87.2" in question.text
    assert list(error_questions(good, [], Claim(0.88, "In [7], cell 12"))) == []


# --- five of them ----------------------------------------------------------------------------------------


def question(kind, number, topic="", chart=""):
    return SheetQuestion(kind, f"{kind} {number}", topic or f"{kind} {number}", "Why?", "So.", chart=chart)


def test_five_of_different_kinds_and_topics_are_asked():
    every = [question(kind, number) for kind in QuestionKind for number in range(9)]
    found = five(every, "s")
    assert len(found) == COUNT and len({one.kind for one in found}) == COUNT
    assert found == five(every[::-1], "s") and len({five(every, seed) for seed in "abcdef"}) == 6
    assert QuestionKind.PART in {one.kind for one in found}
    code = [question(QuestionKind.CODE, number, topic=f"part {number % 3}") for number in range(9)]
    assert len(five(code, "s")) == COUNT and len({one.topic for one in five(code, "s")[:COUNT]}) == 3
    assert five(code[:2], "s") != () and len(five(code[:2], "s")) == 2
    assert five([], "s") == ()


def test_only_one_chart_is_on_a_sheet():
    every = [question(QuestionKind.RESULT, number, chart="<svg/>") for number in range(9)]
    assert [bool(one.chart) for one in five(every, "s")].count(True) == 1
