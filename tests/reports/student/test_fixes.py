from dataclasses import replace

import pytest

from grader.domain.evidence import Blame, Status, Training, TrainingOutcome
from grader.domain.score import GradeStatus
from grader.reports.student.fixes import fixes


@pytest.fixture
def case(examples, assignment):
    """(changes of findings) -> the fixes of an otherwise flawless submission."""

    def make(changes, score=None, **evidence):
        found = examples.base("400101201", assignment)
        found = replace(found, findings=examples.findings(assignment, changes), **evidence)
        return fixes(assignment, found, score or examples.a_score(assignment, found))

    return make


def failed(message="It is wrong.", where="", diagnosis=None, status=Status.FAILED):
    return {
        "status": status,
        "blame": Blame.STUDENT,
        "message": message,
        "where": where,
        "diagnosis": diagnosis,
    }


def test_a_flawless_submission_needs_none(case):
    assert case({}) == ()


def test_points_are_the_weights_share_of_the_component(case):
    (fix,) = case({"attention_matches_oracle": failed()})
    assert fix.component == "Attention"
    assert fix.points == pytest.approx(8 * 4 / 8)
    (fix,) = case({"attention_keeps_shape": failed()})
    assert fix.points == pytest.approx(8 * 1 / 8)


def test_the_fix_worth_most_comes_first_and_fixes_add_up_to_what_is_lost(case, examples, assignment):
    changes = {
        "prenorm_passes_arguments": failed(),
        "vit_matches_oracle": failed(),
        "evaluate_averages_loss": failed(),
    }
    found = case(changes)
    assert [fix.component for fix in found] == ["ViT", "evaluate", "PreNorm"]
    evidence = replace(examples.base("1", assignment), findings=examples.findings(assignment, changes))
    assert sum(fix.points for fix in found) == pytest.approx(
        65 - examples.a_score(assignment, evidence).total
    )


def test_the_same_diagnosis_is_one_fix(case):
    (fix,) = case(
        {
            "attention_matches_oracle": failed("No scale.", "homework.py:41", "missing_scale"),
            "attention_uses_dim_head": failed("No scale here either.", "homework.py:44", "missing_scale"),
        }
    )
    assert fix.points == pytest.approx(5)
    assert fix.checks == ("attention_matches_oracle", "attention_uses_dim_head")
    assert fix.also == ("No scale here either.",)


def test_the_same_place_is_one_fix_named_after_the_recognized_mistake(case):
    (fix,) = case(
        {
            "attention_keeps_shape": failed("The shape differs.", "homework.py:41"),
            "attention_matches_oracle": failed("No scale.", "homework.py:41", "missing_scale"),
        }
    )
    assert (fix.diagnosis, fix.message) == ("missing_scale", "No scale.")
    assert fix.points == pytest.approx(5)


def test_two_recognized_mistakes_at_one_place_are_two_fixes(case):
    found = case(
        {
            "attention_matches_oracle": failed("No scale.", "homework.py:31", "missing_scale"),
            "attention_drops_out": failed("No dropout.", "homework.py:31", "no_dropout"),
        }
    )
    assert [fix.diagnosis for fix in found] == ["missing_scale", "no_dropout"]


def test_places_that_nobody_knows_are_not_the_same_place(case):
    found = case({"vit_pools_mean": failed("One."), "vit_takes_channels": failed("Two.")})
    assert len(found) == 2


def test_components_are_never_mixed(case):
    found = case(
        {
            "vit_pools_mean": failed(where="homework.py:9", diagnosis="same"),
            "evaluate_averages_loss": failed(where="homework.py:9", diagnosis="same"),
        }
    )
    assert {fix.component for fix in found} == {"ViT", "evaluate"}


def test_what_could_not_be_tried_counts_for_what_blocks_it(case):
    (fix,) = case(
        {
            "vit_matches_oracle": failed("It did not return within 10 s."),
            "vit_pools_mean": failed("Could not be tried.", status=Status.SKIPPED),
        }
    )
    assert fix.message == "It did not return within 10 s."
    assert fix.points == pytest.approx(9 * 5 / 7)


def test_blocked_parts_count_for_the_failure_of_the_submission(case):
    found = case(
        {
            "required_files": failed("homework.py has a syntax error."),
            "prenorm_normalizes_first": failed("Could not be tried.", status=Status.SKIPPED),
            "evaluate_averages_loss": failed("Could not be tried.", status=Status.SKIPPED),
        }
    )
    assert [fix.component for fix in found] == ["submission"]
    assert found[0].points == pytest.approx(2 + 2.5)


def test_blocked_parts_without_any_failure_say_why(case):
    (fix,) = case({"vit_pools_mean": failed("Transformer is missing.", status=Status.SKIPPED)})
    assert fix.message == "Transformer is missing."
    assert fix.points == pytest.approx(9 / 7)


@pytest.mark.parametrize("blame", [Blame.INSTRUCTOR, Blame.ENGINE])
def test_what_is_not_the_students_fault_is_no_fix(case, blame):
    changes = {"vit_pools_mean": {"status": Status.ERRORED, "blame": blame, "message": "broken"}}
    assert case(changes) == ()
    skipped = {"vit_pools_mean": {"status": Status.SKIPPED, "blame": blame, "message": "no time left"}}
    assert case(skipped) == ()


def test_a_part_that_is_zeroed_is_worth_what_its_own_code_would_earn(class_results, assignment):
    one = class_results["forbidden"]
    (fix,) = fixes(assignment, one.evidence, one.score)
    assert fix.points == pytest.approx(8)
    assert (fix.component, fix.where) == ("Attention", "homework.py:34")
    assert "from scratch" in fix.message


def test_a_zeroed_part_with_a_mistake_is_not_counted_twice(class_results, assignment, examples):
    one = class_results["forbidden"]
    found = examples.findings(assignment, {"attention_drops_out": failed("No dropout.")})
    evidence = replace(one.evidence, findings=found)
    fix, other = fixes(assignment, evidence, examples.a_score(assignment, evidence))
    assert (fix.points, other.points) == (pytest.approx(7), pytest.approx(1))


def test_an_imported_part_that_nothing_reaches_is_no_fix(class_results, assignment):
    one = class_results["missing_scale"]
    assert not [fix for fix in fixes(assignment, one.evidence, one.score) if "timm" in fix.title]


def test_lost_training_points_are_a_fix_at_the_value_to_change(class_results, assignment):
    one = class_results["missing_scale"]
    fix = next(fix for fix in fixes(assignment, one.evidence, one.score) if fix.component == "training")
    line = next(line for line in one.score.lines if line.id == "training")
    assert fix.points == pytest.approx(15 - line.points)
    assert "55.0" in fix.message and "60" in fix.message
    assert "more epochs" in fix.hint and "First fix the parts of the model" in fix.hint
    assert fix.where == "homework.py:58"


def test_the_part_that_a_training_broke_on_comes_before_the_training(case, examples, assignment):
    """However many points the training is worth; a part that no training uses stays behind it."""
    raised = Training(TrainingOutcome.FAILED, "Training raised RuntimeError.", "homework.py:90")
    changes = {"prenorm_passes_arguments": failed(), "evaluate_averages_loss": failed()}
    evidence = replace(
        examples.base("1", assignment), findings=examples.findings(assignment, changes), training=raised
    )
    score = examples.a_score(assignment, evidence)
    lines = tuple(replace(line, points=0.0) if line.id == "training" else line for line in score.lines)
    found = case(changes, score=replace(score, lines=lines), training=raised)
    assert [fix.component for fix in found] == ["PreNorm", "training", "evaluate"]
    assert found[0].points < found[2].points < found[1].points
    assert "First fix the parts of the model" in found[1].hint
    [alone, *_] = case({}, score=replace(score, lines=lines), training=raised)
    assert alone.component == "training"


def test_unknown_accuracy_is_no_fix(class_results, assignment):
    one = class_results["budget"]
    assert one.evidence.training.outcome is TrainingOutcome.BUDGET
    assert fixes(assignment, one.evidence, one.score) == ()


def test_nothing_is_claimed_where_a_person_gave_full_points(case, examples, assignment):
    changes = {"evaluate_averages_loss": failed()}
    evidence = replace(examples.base("1", assignment), findings=examples.findings(assignment, changes))
    score = examples.a_score(assignment, evidence, GradeStatus.GRADED)
    lines = tuple(replace(line, points=5.0) if line.id == "evaluation" else line for line in score.lines)
    (fix,) = case(changes, score=replace(score, lines=lines))
    assert fix.points == 0


def test_what_is_folded_counts_for_the_fix_of_its_cause(case, examples, assignment):
    """Not for the first fix of the part, and its message is not told with it."""
    changes = {
        "attention_matches_oracle": failed("It is wrong.", diagnosis="missing_scale"),
        "attention_keeps_shape": failed("The shape differs.", "homework.py:41"),
        "attention_uses_dim_head": failed("Another shape.", "homework.py:41")
        | {"because": "attention_keeps_shape"},
        "attention_drops_out": failed("Not tried.", status=Status.SKIPPED)
        | {"because": "attention_keeps_shape"},
    }
    oracle, shape = case(changes)
    assert (oracle.diagnosis, oracle.points) == ("missing_scale", pytest.approx(8 * 4 / 8))
    assert (shape.message, shape.also) == ("The shape differs.", ())
    assert shape.checks == ("attention_keeps_shape", "attention_uses_dim_head", "attention_drops_out")
    assert shape.points == pytest.approx(8 * 3 / 8)
    evidence = replace(examples.base("1", assignment), findings=examples.findings(assignment, changes))
    lost = 65 - examples.a_score(assignment, evidence).total
    assert oracle.points + shape.points == pytest.approx(lost)


def test_what_is_folded_under_a_check_that_passed_is_a_fix_of_its_own(case):
    (fix,) = case({"attention_keeps_shape": failed("Wrong.") | {"because": "attention_matches_oracle"}})
    assert (fix.message, fix.points) == ("Wrong.", pytest.approx(1))
