import json
import math
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from pydantic import ValidationError
from pydantic_core import to_json

from grader.domain.analyzed_program import Note
from grader.domain.evidence import Blame, Epoch, Status, TrainingOutcome, UnfinishedRun
from grader.domain.score import ScoreEdit
from grader.domain.submission import AccountedFile, Download, Fate
from grader.reports.results_json.filled_records import submission_record
from grader.reports.results_json.results_file import (
    download_record,
    results_schema,
    results_schema_text,
    results_text,
    submission_entries,
    submission_text,
    text_without_submissions,
)
from grader.reports.results_json.results_schema import ResultsDocument

SCHEMA = Path(__file__).parents[3] / "docs" / "results.schema.json"


def text_of(assignment, pairs):
    return "".join(results_text(assignment, pairs))


@pytest.fixture(scope="module")
def document(assignment, pairs):
    return json.loads(text_of(assignment, pairs))


def one(document, student_id):
    return next(entry for entry in document["submissions"] if entry["student_id"] == student_id)


def test_a_remark_of_a_check_that_passed_is_kept(assignment, class_results, with_remark):
    good = class_results["good"]
    record = submission_record(with_remark(good.evidence, 1), good.score)
    [noted] = [found for found in record.findings if found.message]
    assert (noted.component, noted.status, noted.blame) == ("ViT", "passed", None)
    assert (noted.diagnosis, noted.where) == ("fixed_positions", "homework.py:41")
    assert noted.message == "The positions are fixed; the handout asks for learnable ones."


def test_a_folded_finding_names_the_check_that_has_the_cause(assignment, class_results):
    good = class_results["good"]
    first, second, *rest = good.evidence.findings
    folded = replace(second, status=Status.FAILED, blame=Blame.STUDENT, because=first.check)
    evidence = replace(good.evidence, findings=(first, folded, *rest))
    document = json.loads(text_of(assignment, [(evidence, good.score)]))
    told = document["submissions"][0]["findings"]
    assert [found["because"] for found in told[:3]] == [None, first.check, None]


def test_keys_are_those_of_the_contract(document):
    assert {"assignment", "max", "submissions"} <= document.keys()
    assert (document["assignment"], document["max"]) == ("vit_defects", 100)
    entry = one(document, "400101204")
    wanted = {
        "student_id",
        "status",
        "total",
        "awaiting",
        "not_run",
        "items",
        "findings",
        "measurements",
        "sandbox",
    }
    assert wanted <= entry.keys()
    assert {"id", "points", "max"} <= entry["items"][0].keys()
    assert entry["items"][0]["id"] == "model" and entry["items"][0]["max"] == 35
    failed = next(finding for finding in entry["findings"] if finding["check"] == "attention_matches_oracle")
    assert (failed["component"], failed["status"], failed["blame"]) == ("Attention", "failed", "student")
    assert (failed["diagnosis"], failed["where"]) == ("missing_scale", "homework.py:41")
    assert failed["message"].startswith("The attention scores")
    assert entry["measurements"]["test_accuracy"] == 0.55
    assert entry["measurements"]["parameters"] == 496_134
    assert entry["measurements"]["test_images"] == 540
    assert entry["sandbox"]["level"] == "strict"
    assert entry["awaiting"] == ["report_quality", "q6", "q7", "q8", "q9", "q10"]


def test_document_fits_the_published_schema(document):
    jsonschema.Draft202012Validator.check_schema(results_schema())
    jsonschema.validate(document, json.loads(SCHEMA.read_text("utf-8")))


def test_schema_requires_every_key_of_the_contract(document):
    for key in ("student_id", "status", "total", "awaiting", "items", "findings", "measurements", "sandbox"):
        broken = json.loads(json.dumps(document))
        del broken["submissions"][0][key]
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(broken, results_schema())


def test_published_schema_has_not_drifted():
    told = "run: python -m grader.reports.results_json.results_file > docs/results.schema.json"
    assert json.loads(SCHEMA.read_text("utf-8")) == json.loads(results_schema_text()), told


def test_unknown_points_are_null_and_never_zero(document):
    for student_id in ("400101211", "400101219"):
        entry = one(document, student_id)
        assert entry["total"] is None
        assert {item["points"] for item in entry["items"]} == {None}
    assert one(document, "400101215")["status"] == "incomplete"
    assert one(document, "400101215")["total"] is None
    assert one(document, "400101215")["missing"] == ["report"]
    budget = one(document, "400101223")
    assert next(item for item in budget["items"] if item["id"] == "training")["points"] is None
    assert "training" in budget["awaiting"]
    assert budget["measurements"]["test_accuracy"] is None
    assert budget["training"]["outcome"] == "budget"


def test_what_was_not_run_is_not_awaiting(document):
    entry = one(document, "400101230")
    assert entry["not_run"] == ["training"]
    assert "training" not in entry["awaiting"]


def test_values_that_json_has_no_word_for_become_null_or_visible(assignment, class_results):
    good = class_results["good"]
    finding = replace(good.evidence.findings[0], message="a lone surrogate \ud800 and a \x00")
    training = replace(good.evidence.training, accuracy=math.nan)
    evidence = replace(good.evidence, findings=(finding,), training=training)
    text = text_of(assignment, [(evidence, good.score)])
    entry = json.loads(text.encode("utf-8"))["submissions"][0]
    assert entry["measurements"]["test_accuracy"] is None
    assert entry["findings"][0]["message"] == "a lone surrogate ⟨U+D800⟩ and a ⟨U+0000⟩"


def test_what_a_students_code_controls_is_there_for_staff(assignment, class_results):
    """Which no page of a student's repeats, and which attempt it was."""
    one = class_results["missing_scale"]
    raised = UnfinishedRun(2, TrainingOutcome.FAILED, "It ended in epoch 1.", "homework.py:9")
    training = replace(
        one.evidence.training,
        epochs=(Epoch(1, 1.5, math.inf, 0.5, 0.003, 2.5),),
        notes=(Note("No batch size was found."),),
        unfinished=(raised,),
    )
    evidence = replace(one.evidence, training=training, attempt=2, notes=(Note("Kept."),))
    entry = json.loads(text_of(assignment, [(evidence, one.score)]))["submissions"][0]
    assert entry["notes"] == ["Kept.", "No batch size was found."]
    assert entry["training"]["attempt"] == 2
    assert entry["training"]["unfinished"] == [
        {"number": 2, "outcome": "failed", "reason": "It ended in epoch 1.", "where": "homework.py:9"}
    ]
    assert entry["training"]["epochs"] == [
        {
            "number": 1,
            "test_loss": None,
            "test_accuracy": 0.5,
            "reported_loss": 1.5,
            "learning_rate": 0.003,
            "seconds": 2.5,
        }
    ]


def test_a_persons_edit_is_kept(assignment, class_results, examples):
    good = class_results["good"]
    edit = ScoreEdit("ta-3", examples.WHEN, "read the report", None, 4.5)
    lines = tuple(
        replace(line, points=4.5, edits=(edit,)) if line.id == "q6" else line for line in good.score.lines
    )
    text = text_of(assignment, [(good.evidence, replace(good.score, lines=lines))])
    item = next(item for item in json.loads(text)["submissions"][0]["items"] if item["id"] == "q6")
    assert item["points"] == 4.5
    assert item["edits"][0]["who"] == "ta-3" and item["edits"][0]["old"] is None


@pytest.mark.parametrize("count", [0, 1, None])
def test_text_made_in_pieces_is_the_document_as_a_whole(assignment, pairs, count):
    chosen = pairs[:count]
    document = ResultsDocument.model_validate_json(text_of(assignment, chosen))
    assert document.submissions == [submission_record(*pair) for pair in chosen]
    plain = json.loads(text_of(assignment, chosen))
    assert text_of(assignment, chosen) == to_json(plain, indent=1).decode() + "\n"


def test_each_submission_is_read_back_as_it_was_told(assignment, class_results, tmp_path):
    odd = replace(
        class_results["good"].evidence, notes=(Note("a \u2028 line \u0085 end"), Note("  {"), Note("  },"))
    )
    told = [(odd, class_results["good"].score), (class_results["good"].evidence, class_results["good"].score)]
    path = tmp_path / "results.json"
    path.write_text(text_of(assignment, told), encoding="utf-8")
    ids = [score.student_id for _, score in told]
    assert list(submission_entries(path)) == [
        (student_id, submission_text(*pair)) for student_id, pair in zip(ids, told, strict=True)
    ]
    path.write_text(path.read_text(encoding="utf-8").replace('"student_id"', '"other"'), encoding="utf-8")
    with pytest.raises(ValueError, match="not a submission"):
        list(submission_entries(path))


def test_an_unknown_key_is_refused(document):
    with pytest.raises(ValidationError):
        ResultsDocument.model_validate({**document, "surprise": 1})


def test_what_is_told_of_the_class_is_read_without_the_submissions(assignment, pairs, tmp_path):
    """A large class's account needs no more memory than a small one's."""
    line = AccountedFile("  {", Fate.REFUSED, None, "  {: its name does not say whose it is.")
    download = download_record(Download((line, line), ("  {",)))
    path = tmp_path / "results.json"
    ordered = sorted(pairs, key=lambda pair: pair[1].student_id)
    for some in (ordered, []):
        path.write_text("".join(results_text(assignment, some, download)), "utf-8")
        frame = ResultsDocument.model_validate_json(text_without_submissions(path))
        assert frame.submissions == [] and frame.download == download
