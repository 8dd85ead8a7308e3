"""comments.toml: what is read from it, and the sentence for each thing that can be wrong in it."""

from pathlib import Path

import pytest

from grader.course.assignment_file import digest, remarks
from grader.domain.assignment import Assignment, Remark
from grader.domain.errors import CourseError

ITEMS = ("q6", "q7")


def written(folder: Path, text: str) -> Path:
    (folder / "comments.toml").write_text(text, encoding="utf-8")
    return folder


def test_comments_come_in_their_order(tmp_path: Path) -> None:
    text = '[[comment]]\nid = "b"\ntext = "One."\n[[comment]]\nid = "a"\nitem = "q7"\ntext = "Two."\n'
    assert remarks(written(tmp_path, text), ITEMS) == (Remark("b", "One."), Remark("a", "Two.", "q7"))


def test_an_assignment_needs_no_bank(tmp_path: Path) -> None:
    assert remarks(tmp_path, ITEMS) == ()


def test_ours_is_about_items_that_exist(assignment: Assignment) -> None:
    assert {remark.item for remark in assignment.remarks} == {"report_quality", "q6", "q7", "q8", "q9"}
    assert not any("\n" in remark.text for remark in assignment.remarks)


def test_a_changed_comment_is_no_reason_to_run_anything_again(tmp_path: Path) -> None:
    before = digest(tmp_path)
    assert digest(written(tmp_path, "")) == before


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('[[comment]]\nid = "a"\n', "comments.toml: [[comment]] 'a' lacks 'text'. Add it."),
        (
            '[[comment]]\nid = "a b"\ntext = "x"\n',
            "comments.toml: comment 'a b' is written into a cell beside others. "
            "Use only letters, digits, '_', '-' and '.' in its id.",
        ),
        (
            '[[comment]]\nid = "a"\ntext = "x"\n' * 2,
            "comments.toml: comment 'a' is there twice. Remove or rename one.",
        ),
        (
            '[[comment]]\nid = "a"\nitem = "q66"\ntext = "x"\n',
            "comments.toml: comment 'a' is about 'q66', which is not a rubric item. Did you mean 'q6'?",
        ),
    ],
)
def test_what_is_wrong_is_told(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(CourseError) as caught:
        remarks(written(tmp_path, text), ITEMS)
    assert str(caught.value) == sentence
