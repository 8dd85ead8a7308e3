"""What is kept of a class for later terms finds copies, and holds neither ids nor work."""

import json

import pytest

from grader.domain.errors import UsageError
from grader.similarity.compared_pairs import compared
from grader.similarity.compared_work import Work
from grader.similarity.fingerprint_store import fingerprints_text, stored_works
from grader.similarity.normalized_code import read_code


def test_a_copy_is_found_by_fingerprints_as_by_the_work_itself(solutions, given, tmp_path):
    first, second, other = solutions.apart(3)
    texts = [solutions.solution(choice) for choice in (first, second)]
    last_year = [
        Work(f"39910120{number}", code=read_code("a.py", text.encode())) for number, text in enumerate(texts)
    ]
    path = tmp_path / "prints.json"
    path.write_text(fingerprints_text("vit_defects", last_year, given=given))
    copy = Work("400101201", code=read_code("a.py", solutions.disguised(texts[0]).encode()))
    honest = Work("400101202", code=read_code("a.py", solutions.solution(other).encode()))
    by_work = compared([copy, honest, Work("399101200", before=True, code=last_year[0].code)], given=given)
    by_prints = compared([copy, honest, *stored_works(path, "vit_defects")], given=given)
    [pair] = by_prints.pairs
    assert pair.one.student_id == "400101201" and pair.other.student_id.startswith("earlier-")
    assert pair.code == by_work.pairs[0].code and not pair.passages
    assert by_prints.scores == by_work.scores  # earlier work is not part of what is usual


def test_neither_ids_nor_lines_nor_the_order_of_the_class_are_kept(solutions, given):
    choices = solutions.apart(2)
    codes = [read_code("a.py", solutions.solution(choice).encode()) for choice in choices]
    works = [Work(f"39910120{number}", code=code) for number, code in enumerate(codes)]
    text = fingerprints_text("vit_defects", works, given=given)
    assert text == fingerprints_text("vit_defects", works[::-1], given=given)
    document = json.loads(text)
    values = {type(value) for one in document["submissions"] for start in one["starts"] for value in start}
    assert values == {int} and document["submissions"][0].keys() == {"lengths", "starts"}
    assert "3991012" not in text


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("[]", "holds no fingerprints"),
        (
            '{"assignment": "other", "stretch": 16, "window": 4, "submissions": []}',
            "is of the assignment 'other'",
        ),
        (
            '{"assignment": "vit_defects", "stretch": 9, "window": 4, "submissions": []}',
            "chose other fingerprints",
        ),
    ],
)
def test_another_file_is_refused_in_a_sentence(content, told, tmp_path):
    path = tmp_path / "prints.json"
    path.write_text(content)
    with pytest.raises(UsageError, match=told):
        stored_works(path, "vit_defects")
