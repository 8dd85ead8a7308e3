from dataclasses import replace
from datetime import UTC, datetime

import pytest

from grader.domain.analyzed_program import TRAINING, ForbiddenUse, Note, Place
from grader.domain.evidence import Training, TrainingOutcome
from grader.domain.program_run import Pried, Prying
from grader.domain.score import LateRecord, ScoreEdit, Waiver
from grader.domain.submission import AccountedFile, Download, Fate
from grader.domain.submission_result import PRYING_WORDS
from grader.reports.results_json.results_file import download_record
from grader.reports.student.fixes import forbidden_costs
from grader.reports.whole_class.class_statistics import check_rates
from grader.reports.whole_class.review_cases import CAUSES, cases
from grader.reports.whole_class.review_queue import final_total, review_queue
from grader.reports.whole_class.similarity_record import SimilarityRecord


@pytest.fixture
def queue(assignment):
    """(pairs, download) -> the queue by the ids of its causes."""

    def made(pairs, download=None, course=assignment):
        own = [case for evidence, score in pairs for case in cases(course, evidence, score)]
        sections = review_queue(course, pairs, own, check_rates(course, pairs), download)
        order = [CAUSES.index(section.cause) for section in sections]
        assert order == sorted(order)
        assert all(section.rows for section in sections)
        return {section.cause.id: section for section in sections}

    return made


@pytest.fixture
def done(class_results):
    """A submission with nothing left to decide, and so many points in all."""

    def made(total, student_id="1001", **evidence):
        good = class_results["good"]
        lines = tuple(replace(line, points=line.points or 0.0, state="decided") for line in good.score.lines)
        score = replace(good.score, student_id=student_id, lines=lines, decided=100, total=total, late=None)
        return replace(good.evidence, student_id=student_id, **evidence), score

    return made


def test_every_reason_of_the_example_class_is_in_the_queue(queue, pairs):
    found = queue(pairs)
    assert {name: section.count for name, section in found.items()} == {
        "engine-error": 1,
        "refused": 1,
        "incomplete": 1,
        "undecided": 1,
        "undecided-checks": 2,
        "marks": 7,
        "not-run": 1,
        "claims": 3,
        "forbidden": 1,
        "weights": 2,
        "late-decide": 2,
        "files": 1,
        "unofficial": 1,
        "partial": 1,
    }


def test_what_is_equal_is_said_once_with_all_whom_it_is_about(queue, pairs):
    (row,) = queue(pairs)["undecided-checks"].rows
    assert row.students == ("400101204", "400101215") and "predictions_name_labels" in row.text
    assert len(queue(pairs)["marks"].rows) == 6


@pytest.mark.parametrize(
    ("claimed", "asked"), [(0.9, False), (0.91, True), (0.83, False), (0.79, True), (float("nan"), False)]
)
def test_a_claim_is_asked_about_beyond_5_points_either_way(queue, done, claimed, asked):
    evidence, score = done(90.0)
    training = replace(evidence.training, accuracy=0.85)
    evidence = replace(evidence, training=training)
    score = replace(score, claim=replace(evidence.claim, accuracy=claimed))
    assert ("claims" in queue([(evidence, score)])) is asked


def test_a_claim_beside_a_training_that_failed_and_epochs_beyond_the_codes_are_listed(queue, done):
    """They change no points, so that a person must see them."""
    evidence, score = done(90.0)
    score = replace(score, claim=replace(evidence.claim, accuracy=0.83))
    failed = Training(TrainingOutcome.FAILED, reason="It raised KeyError.")
    (row,) = queue([(replace(evidence, training=failed), score)])["claims"].rows
    assert row.text.replace("\N{NO-BREAK SPACE}", " ") == "83.0 % claimed, and the training failed (cell 21)"
    training = replace(evidence.training, accuracy=0.83, planned_epochs=1)
    (row,) = queue([(replace(evidence, training=training, shown_epochs=30), score)])["claims"].rows
    assert row.text == "Outputs of 30 epochs, code of 1"


def test_an_accuracy_that_is_no_number_asks_nothing_of_the_claim(queue, done):
    evidence, score = done(90.0)
    evidence = replace(evidence, training=replace(evidence.training, accuracy=float("nan")))
    assert queue([(evidence, score)]) == {}


def test_notes_that_ask_for_a_person_are_in_the_queue_and_others_are_not(queue, done):
    other = Note("%matplotlib was left out, at which a person should look, says its author.")
    asking = Note("homework.py:3: 90210 characters of data are written out.", ask_person=True)
    (row,) = queue([done(90.0, notes=(other, asking))])["suspicious"].rows
    assert row.text == asking.text
    assert queue([done(90.0, notes=(other,))]) == {}


def test_why_a_training_was_rebuilt_stands_where_the_points_are_to_be_decided(queue, class_results):
    """The student's page does not repeat what a worker that trains says."""
    good = class_results["good"]
    lines = tuple(
        replace(line, points=None, state="awaiting") if line.id in ("training", "model") else line
        for line in good.score.lines
    )
    score = replace(good.score, lines=lines)
    training = replace(good.evidence.training, rebuilt=True, notes=(Note("It was rebuilt: why."),))
    texts = [
        row.text for row in queue([(replace(good.evidence, training=training), score)])["undecided"].rows
    ]
    assert [text.endswith("It was rebuilt: why.") for text in sorted(texts)] == [False, True]


def test_where_code_pried_is_in_the_queue_once_for_each_line_and_stage(queue, done):
    """It is a field of the evidence: no words are searched for."""
    line = Place("homework.py", 3)
    pried = Pried(Prying.FRAMES, line, "Attention"), Pried(Prying.FRAMES, None, TRAINING)
    first, second = queue([done(90.0, pried=(*pried, *pried))])["suspicious"].rows
    assert first.text.startswith("homework.py:3: when it ran, the code looks at running functions")
    assert "(Attention)" in first.text and "(the training)" in second.text


def test_every_kind_of_prying_has_its_words():
    assert set(PRYING_WORDS) == set(Prying)


def test_a_disturbed_watch_is_in_the_queue(queue, done):
    (row,) = queue([done(90.0, unproven=("Attention",))])["disturbed-watch"].rows
    assert row.text.startswith("After Attention, the watch for forbidden parts did not answer")


def test_what_the_training_alone_uses_is_in_the_queue_and_costs_no_part(queue, done, assignment):
    use = ForbiddenUse("timm", "timm.create_model", Place("homework.py", 3), (TRAINING,))
    evidence, score = done(90.0, forbidden=(use,))
    (row,) = queue([(evidence, score)])["flagged"].rows
    assert row.text == (
        "`timm.create_model`: It is reached by the training: a person decides what the measured accuracy is "
        "worth."
    )
    assert forbidden_costs(assignment, evidence, score) == ()


def test_what_a_part_uses_inside_costs_nothing(queue, done, assignment):
    name = "torch.nn.MultiheadAttention"
    use = ForbiddenUse(name, name, Place("homework.py", 3), ("ViT",), inside="torch.nn.Layer")
    evidence, score = done(90.0, forbidden=(use,))
    (row,) = queue([(evidence, score)])["flagged"].rows
    assert row.text == f"`{name}`: `torch.nn.Layer` uses it inside: a person looks at it."
    assert forbidden_costs(assignment, evidence, score) == ()


def test_totals_near_a_boundary_are_listed_in_their_order(queue, assignment, done):
    pairs = [done(total, str(number)) for number, total in enumerate((52.01, 52.0, 48.0, 47.9, 80.0))]
    assert [row.students for row in queue(pairs)["boundary"].rows] == [("2",), ("1",)]
    course = replace(assignment, boundaries=(60.0, 79.0))
    assert [row.students for row in queue(pairs, course=course)["boundary"].rows] == [("4",)]


def test_only_a_total_that_nothing_changes_any_more_is_near_a_boundary(queue, done):
    evidence, score = done(50.0)
    assert "boundary" in queue([(evidence, score)])
    open_line = replace(score.lines[-1], points=None, state="awaiting")
    still_open = replace(score, lines=(*score.lines[:-1], open_line))
    assert final_total(still_open) is None and "boundary" not in queue([(evidence, still_open)])


def test_what_lateness_leaves_of_a_total_is_near_a_boundary(queue, done):
    def near(total, left):
        evidence, score = done(total)
        late = LateRecord("late", 1, total - left, left, asked=False, reason="")
        return "boundary" in queue([(evidence, replace(score, late=late))])

    assert near(55.0, 50.0) and not near(50.0, 45.0)


def test_an_accuracy_near_the_threshold_is_listed(queue, done):
    evidence, score = done(90.0)

    def near(accuracy):
        training = replace(evidence.training, accuracy=accuracy)
        return "boundary" in queue([(replace(evidence, training=training, claim=None), score)])

    assert near(0.585) and near(0.62) and not near(0.579) and not near(0.63)


def test_a_suspect_check_is_told_with_what_its_mistakes_are_called(queue, examples, assignment, done):
    def failing(number):
        named = {"diagnosis": "missing_scale"} if number < 4 else {}
        changes = {"attention_matches_oracle": {"status": examples.FAILED, **named}}
        return done(90.0, str(number), findings=examples.findings(assignment, changes if number < 6 else {}))

    (row,) = queue([failing(number) for number in range(10)])["suspect-checks"].rows
    assert row.text == (
        "`attention_matches_oracle`: 6 of 10 who wrote Attention fail it; the grader names 4 of these "
        "mistakes, most often `missing_scale` (4)."
    )


def test_files_of_the_download_are_asked_about_once(queue, done):
    download = download_record(
        Download(
            (
                AccountedFile("1001.py", Fate.MATCHED, "1001"),
                AccountedFile("old.py", Fate.SUPERSEDED, "1001", "old.py: is an earlier attempt."),
                AccountedFile("own.docx", Fate.REFUSED, "1001", "own.docx: the submission tells it itself."),
                AccountedFile("x.bin and others", Fate.REFUSED, None, "x.bin: is nobody's.", 30),
                AccountedFile("1002.zip", Fate.REFUSED, "1002", "1002.zip: is damaged."),
            )
        )
    )
    found = queue([done(90.0)], download)
    assert {name: section.counted.replace("\xa0", " ") for name, section in found.items()} == {
        "no-result": "1 student",
        "files": "30 files",
        "attempts": "1 file",
    }
    assert found["no-result"].rows[0].students == ("1002",)


def test_a_waived_check_asks_nothing_of_a_person(queue, class_results):
    one = class_results["missing_scale"]
    waived = replace(one.score, waived=(("predictions_name_labels", Waiver("ta1", "broken")),))
    assert "undecided-checks" in queue([(one.evidence, one.score)])
    assert "undecided-checks" not in queue([(one.evidence, waived)])


def test_a_check_of_points_that_a_person_gave_by_hand_holds_nothing(queue, class_results, examples):
    """Only `grader waive`, for the whole class, would have settled it."""
    evidence, score = class_results["missing_scale"].evidence, class_results["missing_scale"].score
    by_hand = ScoreEdit("ta1", examples.WHEN, "I read it.", None, 20.0)
    lines = tuple(
        replace(line, points=20.0, state="decided", edits=(by_hand,))
        if line.id in ("model", "evaluation", "visualization")
        else line
        for line in score.lines
    )
    assert "undecided-checks" in queue([(evidence, score)])
    assert "undecided-checks" not in queue([(evidence, replace(score, lines=lines))])
    taken_back = tuple(
        replace(line, edits=(*line.edits, replace(by_hand, old=20.0, new=None))) for line in lines
    )
    assert "undecided-checks" in queue([(evidence, replace(score, lines=taken_back))])


def test_pairs_of_similar_submissions_come_in_the_order_of_their_strength(assignment, pairs):
    """Equal sentences about different pairs stay apart; one of an earlier class is named in words."""
    said = "92 % and 88 % of their own code"
    found = [("400101204", "400101201", False), ("400101201", "400101205", False), ("400101205", "9", True)]
    record = SimilarityRecord(
        assignment=assignment.id,
        compared_at=datetime(2026, 2, 1, tzinfo=UTC),
        submissions=9,
        threshold=0.5,
        pairs=[{"one": one, "other": other, "before": before, "says": said} for one, other, before in found],
    )
    sections = review_queue(assignment, pairs, [], (), None, record)
    (section,) = [one for one in sections if one.cause.id == "similar"]
    assert section.count == 3 and not section.cause.holds
    assert [row.students for row in section.rows] == [
        ("400101201", "400101204"),
        ("400101201", "400101205"),
        ("400101205",),
    ]
    assert section.rows[2].text == f"{said}, with 9 from an earlier class."


def test_open_marks_are_counted_by_item_and_few_students_named(queue, class_results, assignment):
    """Of a large class the page says how many are open and who has marked the others, not all names."""
    good = class_results["good"]
    (item, *_) = [item for item in assignment.rubric if item.by_person]
    when = datetime(2026, 2, 1, tzinfo=UTC)

    def marked(number, who):
        edits = (ScoreEdit(who, when, "Read.", None, 1.0),) if who else ()
        lines = tuple(
            replace(line, points=1.0, state="decided", edits=edits) if who and line.id == item.id else line
            for line in good.score.lines
        )
        return good.evidence, replace(good.score, student_id=f"4001{number:05d}", lines=lines)

    many = [marked(number, "ta1" if number < 20 else "ta2" if number < 30 else "") for number in range(200)]
    section = queue(many)["marks"]
    assert section.count == 200
    first = section.rows[0]
    assert first.students == () and first.text.startswith(item.title)
    assert first.text.endswith("170 of 200 open; marked by ta1 (20) and ta2 (10)")
    few = [marked(number, "ta1" if number < 192 else "") for number in range(200)]
    assert queue(few)["marks"].rows[0].students == tuple(f"4001{number:05d}" for number in range(192, 200))
    assert queue(few[-8:])["marks"].rows[0].students == (), "all of the class: that says the number"
