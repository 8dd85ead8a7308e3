"""Attacks by files: a class in which every student but one hands in something hostile, graded as a whole."""

import html
import json
import re
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from grader.gradebook import Gradebook
from grader.grading.class_run import graded
from grader.grading.examiner import OnThisMachine
from grader.grading.run import Run
from grader.grading.submission_draws import draws_of
from grader.intake import submissions
from grader.parser.client.parsed_files import ParserOpener
from grader.results.class_files import write_class
from grader.training import Job, measured_checkpoint

pytestmark = pytest.mark.slow
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
HONEST = "400101200"
# without the plots: they would take the longest, and must not be stopped by the attacks' short limits
UNDRAWN = """
def plot_confusion_matrix(model, data_loader, class_names):
    raise NotImplementedError


def plot_classwise_predictions(model, data_loader, class_names, samples_per_class=4):
    raise NotImplementedError
"""


def written(upload, root: Path) -> None:
    """Hand in an upload's files."""
    folder = root / upload.student_id
    folder.mkdir(parents=True)
    for name, content in upload.files().items():
        (folder / name.replace("{student_id}", upload.student_id)).write_bytes(content)


@pytest.fixture(scope="module")
def graded_class(request, planted_course, attacked, hosts, uploads, composed, planted, tmp_path_factory):
    """The folder of the results, that of the class, and what lies in and beside it.

    In the class are the uploads that the tests are about which are asked for.
    """
    around = tmp_path_factory.mktemp("uploads")
    handed_in, out, scratch = (around / name for name in ("class", "out", "scratch"))
    chosen = {
        item.callspec.params.get("upload") for item in request.session.items if hasattr(item, "callspec")
    }
    for upload in uploads:
        if upload in chosen:
            written(upload, handed_in)
    (handed_in / HONEST).mkdir()
    (handed_in / HONEST / f"{HONEST}_Lab8_Homework.py").write_text(composed(UNDRAWN), encoding="utf-8")
    before = {str(path) for folder in (handed_in, Path("/tmp")) for path in folder.glob("*")}
    scratch.mkdir()
    run = Run(partial(draws_of, planted_course[0], attacked), attacked, None, hosts)
    found = submissions(handed_in, attacked, scratch, ParserOpener(hosts.parsers))
    with Gradebook(out, assignment_id=attacked.id) as book:
        results = graded(
            OnThisMachine(run),
            found.submissions,
            out,
            jobs=2,
            clock=lambda: NOW,
            book=book,
            watch=lambda progress: None,
        )
    write_class(attacked, results, out, NOW)
    after = {str(path) for folder in (handed_in, Path("/tmp")) for path in folder.glob("*")}
    return out, after - before, {path.name for path in around.iterdir()}


@pytest.fixture(scope="module")
def results(graded_class):
    """What results.json says, by student id."""
    document = json.loads((graded_class[0] / "results.json").read_text(encoding="utf-8"))
    return {entry["student_id"]: entry for entry in document["submissions"]}


def test_an_upload_gains_nothing(upload, graded_class, results):
    entry = results[upload.student_id]
    page = (graded_class[0] / "students" / upload.student_id / "report.html").read_text("utf-8")
    assert entry["status"] in ("graded", "incomplete", "refused"), entry["reason"]
    assert not any(item["points"] for item in entry["items"])
    if not upload.checkpoint:
        text = html.unescape(page) + json.dumps(entry)
        assert re.search(upload.says, text), text[-3000:]
    answers = graded_class[0] / "students" / upload.student_id / "answers.html"
    assert answers.is_file() == bool(upload.page)
    if upload.page:
        drawn = answers.read_text("utf-8")
        assert re.search(upload.page, drawn), drawn[-3000:]
        assert not re.search(r"alert|/bin/sh|/etc/passwd|root:|https?:|setup\.exe|<script", drawn)
    assert "<script>alert" not in page and "<img src=x" not in page and "\x1b" not in page


def test_a_hostile_checkpoint_is_refused(hostile_checkpoint, hosts, attacked, solved, few_images, analyzed):
    """In a worker, which loads it into the solution's model."""
    job = Job(analyzed(solved), attacked.limits, splits=few_images)
    workers = lambda: hosts.workers.spawn(limits_of(attacked))  # noqa: E731
    [data] = hostile_checkpoint.files().values()
    found = measured_checkpoint(workers, job, data, "weights.pth")
    assert found.status in ("refused", "whole_model") and found.accuracy is None
    assert re.search(hostile_checkpoint.says, found.reason), found


def limits_of(assignment):
    from grader.sandbox.process_limits import ProcessLimits

    return ProcessLimits.within(assignment.limits, cpu_seconds=60)


def test_nothing_was_written_elsewhere_and_no_secret_came_out(graded_class, planted):
    out, new, beside = graded_class
    assert not [path for path in new if "slipped" in path or "unpickled" in path or path.endswith("evil.py")]
    assert beside == {"class", "out", "scratch"}
    for path in out.rglob("*"):
        assert path.is_dir() or planted.token.encode() not in path.read_bytes(), path


def test_honest_work_among_them_has_full_marks(results):
    points = {item["id"]: item["points"] for item in results[HONEST]["items"]}
    assert [points[name] for name in ("model", "evaluation", "visualization")] == [35, 5, 0]


def test_nothing_runs_any_more(graded_class, hosts_traces, lasting):
    assert not lasting(
        lambda: {trace for trace in hosts_traces() if trace.startswith(("shared", "control"))}, set()
    )
