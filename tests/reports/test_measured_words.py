"""What is measured is called and written as its measure says, on every page."""

from dataclasses import replace
from datetime import UTC, datetime

from grader.decisions.marking_sheet import marking_rows
from grader.domain.analyzed_program import Place, TunedValue
from grader.domain.assignment import Assignment, DataUse, RubricItem
from grader.domain.assignment_files import SubmittedFile
from grader.domain.evidence import Evidence, TrainedModel, Training, TrainingOutcome, UnfinishedRun
from grader.domain.formatting import percent
from grader.domain.measure import Measure, Scale, TrainingCall
from grader.reports.measured_words import measured_words
from grader.reports.student.findings import line_notes
from grader.reports.student.student_pages import student_page
from grader.reports.whole_class.class_page import class_page, leaderboard_page
from grader.scoring import score

NOW = datetime(2026, 2, 1, tzinfo=UTC)
LOSS = Measure(
    "bits",
    "bits per character",
    function="bits",
    scale=Scale(lower_is_better=True, is_share=False),
    call=TrainingCall("GPT", "fit", given={"model": "{model}", "epochs": 3}),
)
TRAINED = Training(TrainingOutcome.COMPLETED, value=1.834, interval=(1.7, 1.95), seconds=12.0)


def measured(assignment: Assignment) -> Assignment:
    """The assignment, of which a loss on data that are not images is measured."""
    item = RubricItem("measured", "Measured", 15, measured="bits", scale=LOSS.scale, threshold=2.0)
    item = replace(item, breakpoints=((1.5, 15.0), (3.0, 0.0)))
    data = DataUse("letters", "letters", are_images=False)
    return replace(
        assignment,
        title="A small language model",
        components=(),
        checks=(),
        rubric=(item,),
        forbidden=(),
        files=(SubmittedFile("code", (".py",)),),
        data=data,
        measures=(LOSS,),
        leaderboard=True,
    )


def evidence(assignment: Assignment, student_id: str, training: Training) -> Evidence:
    return Evidence(student_id, assignment.id, "", NOW, measure="bits", training=training)


def test_no_page_speaks_of_images_or_accuracies_where_there_are_none(assignment: Assignment) -> None:
    """The student's page, the class's and the leaderboard."""
    own = measured(assignment)
    found = evidence(own, "400101201", TRAINED)
    worse = evidence(own, "400101202", replace(TRAINED, value=2.5, interval=(2.4, 2.6)))
    results = [(each, score(own, each)) for each in (worse, found)]
    report = student_page(own, *results[1], images={}, generated_at=NOW)
    page = class_page(own, results, links={}, generated_at=NOW)
    board = leaderboard_page(own, results, generated_at=NOW)
    for text in (report, page, board):
        visible = text[text.index("<main") :]
        assert "test image" not in visible and "Accuracy" not in visible and "accuracy" not in visible
        assert ("1.834" in visible and "ower is better" in visible) or text is page
    assert ">fit(model, epochs=3)</code> in 12.0" in report
    assert (
        "In “bits per character” (lower is better), your model reached <b>1.834</b>, 95 % interval" in report
    )
    assert "It was measured on hidden data, whose answers its code never sees." in report
    rows = board[board.index("<tbody") :]
    assert rows.index("1.834") < rows.index("2.5"), "the lowest is the best"
    assert "Bits per character<br>95 % interval" in page


def test_values_of_a_source_that_a_call_does_not_use_are_not_shown(assignment: Assignment) -> None:
    """The training has the call's batch size, whatever the student's script says."""
    chosen = (TunedValue("batch_size", "500", Place("homework.py", 3)),)
    own = measured(assignment)
    own = replace(own, rubric=(*own.rubric, RubricItem("essay", "Essay", 5)))
    source = {"homework.py": "from torch import nn\n\nBATCH = 500\n"}
    found = replace(evidence(own, "400101201", TRAINED), tuned=chosen, source=source)
    replayed = replace(own, measures=(replace(LOSS, call=None),))
    for by, shown in ((own, False), (replayed, True)):
        page = student_page(by, found, score(by, found), images={}, generated_at=NOW)
        notes = line_notes(by, found, score(by, found), ())
        assert ("<code>500</code>" in page) is ("Values that you chose" in page) is shown
        assert ("batch size: `500`" in [note.title for note in notes]) is shown
        [row] = marking_rows(by, [(found, score(by, found))], (), links={})
        assert ("500" in str(row)) is shown


def test_why_a_person_decides_is_told_to_its_end(assignment: Assignment) -> None:
    """On the report and on the class page; no reason of ours ends in the middle of a sentence."""
    own = measured(assignment)
    stopped = UnfinishedRun(4, TrainingOutcome.FAILED, "Training ended in epoch 2: it raised RuntimeError")
    apart = replace(TRAINED, value=2.02, interval=(1.6, 2.44), runs=(1.6, 2.02, 2.44), unfinished=(stopped,))
    found = evidence(own, "400101201", apart)
    scored = score(own, found)
    reason = scored.lines[0].reason
    assert reason.endswith("their mean says little. A person decides.") and len(reason) > 330
    report = student_page(own, found, scored, images={}, generated_at=NOW)
    page = class_page(own, [(found, scored)], links={}, generated_at=NOW)
    for text in (report, page):
        assert "their mean says little. A person decides." in text


def test_several_measures_stand_side_by_side(assignment: Assignment) -> None:
    """A column, a section and a board for each."""
    own = measured(assignment)
    other = replace(LOSS, id="loss", title="held-out loss")
    own = replace(own, measures=(LOSS, other))
    found = replace(
        evidence(own, "400101201", TRAINED),
        further={"loss": TrainedModel(training=replace(TRAINED, value=0.271, interval=None))},
    )
    results = [(found, score(own, found))]
    page = class_page(own, results, links={}, generated_at=NOW)
    assert "Bits per character<br>" in page and "Held-out loss<br>" in page and "0.271" in page
    assert 'id="training"' in page and 'id="loss-training"' in page
    board = leaderboard_page(own, results, generated_at=NOW)
    assert board.count("<table") == 2 and "<h2>Held-out loss</h2>" in board


def test_accuracies_keep_their_words(assignment: Assignment) -> None:
    words = measured_words(assignment, assignment.measures[0])
    assert (words.heading, words.hidden_data) == ("Test accuracy", "hidden test images")
    assert words.value(0.8057) == percent(0.8057)
