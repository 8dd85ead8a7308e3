"""The comments for a question that can be given again."""

from grader.marking.comment_bank import comment_bank
from grader.marking.desk import Desk, handle_of
from grader.marking.mark_saving import ChosenMark, opened_task, save_mark
from grader.marking.second_marking import choose_second
from tests.marking.conftest import NOW, STUDENTS, TEAM


def given(desk: Desk, student_id: str, chosen: ChosenMark, who: str = "ta1", target: str = "q6") -> None:
    handle = handle_of(desk, student_id)
    at = opened_task(desk, target, handle, who).version
    save_mark(desk, target, handle, chosen, who, NOW, drawn_from=at)


def test_comments_are_counted_in_the_marks_that_stand(desk: Desk) -> None:
    short = ChosenMark(points=2, comment="Too short: name an example.")
    given(desk, STUDENTS[0], short)
    given(desk, STUDENTS[1], short, "ta2")
    given(desk, TEAM[0], short)
    given(desk, STUDENTS[2], ChosenMark(points=2, comment="Once only.", remarks=("position_order_only",)))
    given(desk, STUDENTS[3], ChosenMark(items=("no_order",), comment="Replaced."))
    given(desk, STUDENTS[3], ChosenMark(items=("no_order",)))
    given(desk, STUDENTS[3], ChosenMark(points=1, comment="Of another question."), target="q8")
    bank = comment_bank(desk, "q6")
    assert [(one.id, one.text[:10], one.uses, one.by) for one in bank] == [
        ("", "Too short:", 3, "ta1"),
        ("position_order_only", "Positions ", 1, ""),
        ("", "Once only.", 1, "ta1"),
    ]
    assert len(comment_bank(desk, "q6", limit=1)) == 1


def test_comments_without_use_are_offered_where_they_fit(desk: Desk) -> None:
    assert [(one.id, one.uses) for one in comment_bank(desk, "q6")] == [("position_order_only", 0)]
    assert comment_bank(desk, "q10.class_token") == ()


def test_a_search_needs_all_words_in_any_order_and_case(desk: Desk) -> None:
    given(desk, STUDENTS[0], ChosenMark(points=2, comment="Name the ATTENTION weights."))
    assert [one.uses for one in comment_bank(desk, "q6", search="weights attention")] == [1]
    assert [one.id for one in comment_bank(desk, "q6", search="ORDER_only")] == ["position_order_only"]
    assert comment_bank(desk, "q6", search="weights nothing") == ()


def test_who_marks_a_second_time_is_not_shown_the_first_comment(desk: Desk) -> None:
    given(desk, STUDENTS[0], ChosenMark(points=2, comment="The cat of page 3 is no class."))
    choose_second(desk, "q6", 1.0, ["ta2"], NOW, by="head")
    assert "The cat of page 3 is no class." in [one.text for one in comment_bank(desk, "q6", marker="ta1")]
    assert [one.id for one in comment_bank(desk, "q6", marker="ta2")] == ["position_order_only"]
