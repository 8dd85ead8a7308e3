"""Values are drawn by the key alone: the same for the same, evenly, and nobody's follow from another's."""

from collections import Counter

import pytest

from grader.domain.assignment_versions import (
    DrawnValue,
    PackedValues,
    StudentValues,
    drawn_values,
    each_choice,
    first_choices,
    keyed_number,
    python_text,
    shown_values,
    students_key,
)
from grader.domain.errors import CourseError

HEADS = DrawnValue("heads", (2, 4, 8), per_student=True)
POOLING = DrawnValue("pooling", ("mean", "max"))
SIZES = DrawnValue("sizes", ((8, 8), (16, 16)))


def drawn(student_id: str = "", term: str = "fall", key: str = "key", assignment: str = "a") -> dict:
    return drawn_values(key, assignment, (HEADS, POOLING, SIZES), term, student_id)


def test_what_is_drawn_is_the_documented_number() -> None:
    own_key = f"{keyed_number('key', 'students:a:fall'):064x}"
    assert students_key("key", "a", "fall") == own_key
    assert drawn("s1")["heads"] == HEADS.choices[keyed_number(own_key, "heads:s1") % 3]
    assert drawn("s1")["pooling"] == POOLING.choices[keyed_number("key", "variant:a:pooling:fall") % 2]


def test_a_students_values_depend_on_the_student_and_a_terms_do_not() -> None:
    everybody = [drawn(f"s{number}") for number in range(60)]
    assert {each["heads"] for each in everybody} == {2, 4, 8}
    assert len({each["pooling"] for each in everybody}) == len({each["sizes"] for each in everybody}) == 1
    assert drawn("Ab1") == drawn("aB1"), "an id is the same in capital letters"
    assert drawn()["heads"] == 2, "nobody's is the first choice"


@pytest.mark.parametrize("others", [{"term": "spring"}, {"key": "other"}, {"assignment": "b"}])
def test_another_term_secret_or_assignment_has_other_values(others: dict) -> None:
    students = [f"s{number}" for number in range(40)]
    assert [drawn(each)["heads"] for each in students] != [
        drawn(each, **others)["heads"] for each in students
    ]


def test_a_package_draws_the_same_without_the_secret() -> None:
    of_term = {name: value for name, value in drawn().items() if name != "heads"}
    packed = PackedValues(of_term, students_key("key", "a", "fall"))
    stated = (HEADS, POOLING, SIZES)
    for number in range(40):
        values = packed.of(stated, f"S{number}")
        assert values == drawn(f"s{number}") and list(values) == ["heads", "pooling", "sizes"]
    assert packed.of(stated, "") == drawn()
    keys = {students_key(key, name, term) for key in ("k", "l") for name in "ab" for term in ("", "x")}
    assert len(keys) == 8 and packed.key not in repr(packed)


def test_choices_are_equally_likely() -> None:
    counts = Counter(drawn(f"s{number}")["heads"] for number in range(3000))
    assert all(900 < count < 1100 for count in counts.values())  # 1000 with a deviation of 26


def test_each_choice_comes_once_with_the_others_at_their_first() -> None:
    assert list(each_choice((HEADS, POOLING))) == [
        {"heads": 2, "pooling": "mean"},
        {"heads": 4, "pooling": "mean"},
        {"heads": 8, "pooling": "mean"},
        {"heads": 2, "pooling": "max"},
    ]
    assert list(each_choice(())) == [] and first_choices(()) == {}


def test_values_are_written_as_python_and_shown_to_people() -> None:
    texts = [python_text(value) for value in (4, 0.1, True, 'a "b"', (1, 2))]
    assert texts == ["4", "0.1", "True", '"a \\"b\\""', "[1, 2]"]
    assert shown_values({"heads": 4, "pooling": "mean", "sizes": (8, 8)}) == (
        "heads = 4, pooling = mean, sizes = [8, 8]"
    )


def test_a_check_that_asks_for_something_else_is_told_what_there_is() -> None:
    values = StudentValues({"heads": 4, "sizes": (8, 8)})
    assert dict(values) == {"heads": 4, "sizes": [8, 8]} and len(values) == 2 and "head" not in values
    with pytest.raises(
        CourseError, match=r"asks for the variant's 'head', but \[variant\] has 'heads', 'sizes'"
    ):
        values["head"]
    with pytest.raises(CourseError, match="has nothing"):
        StudentValues({}).get("heads")
