"""All checks of one submission: hangs, deaths, lies, isolation, seeds."""

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grader.course.assignment_file import read_assignment
from grader.domain.analyzed_program import Program
from grader.domain.assignment import Assignment
from grader.domain.errors import CourseError
from grader.domain.evidence import Blame, FindingKind, Status
from grader.files.known_folders import public_checks
from grader.judge.examination import Checks, run_pytest
from grader.judge.student import Student
from grader.kit import AffineFake, Mismatch
from grader.protocol import deadlines
from grader.protocol.frames import Frame
from grader.protocol.link import WorkerFault, WorkerProcess
from tests.copied_assignment import copied_assignment

HANG = """
class Attention(Attention):
    def forward(self, x):
        while True:
            pass
"""
WAITS = f"import time\n{HANG.replace('pass', 'time.sleep(0.1)')}"
QUICK = {"call_seconds": 1.0, "load_seconds": 20.0}


def by_component(found: Any) -> dict[str, Counter[str]]:
    """Component -> how many of its findings have which status."""
    counts: dict[str, Counter[str]] = {}
    for finding in found.findings:
        counts.setdefault(finding.component, Counter())[str(finding.status)] += 1
    return counts


def test_a_hang_costs_one_limit_and_nobody_else(
    composed: Callable[..., str], examined: Callable[..., Any]
) -> None:
    """The component's remaining checks are skipped; the others go on in a new worker."""
    workers: list[WorkerProcess] = []
    parts = ["Attention", "FeedForward", "ViT"]
    found = examined(composed(HANG, after=True), components=parts, limits=QUICK, workers=workers)
    counts = by_component(found)
    own = [f for f in found.findings if f.component == "Attention"]
    assert counts["Attention"]["failed"] == 1
    assert counts["Attention"]["skipped"] == len(own) - 1, own
    assert next(f for f in own if f.status == "failed").kind is FindingKind.HANGS
    assert all("did not return within 1 s" in f.message for f in own)
    assert set(counts["FeedForward"]) == set(counts["ViT"]) == {"passed"}
    assert len(workers) == 2


def test_what_a_busy_machine_does_not_finish_is_not_the_submissions_fault(
    composed: Callable[..., str], examined: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody knows whether it hangs, and what is left is not tried: it would be told the same."""
    monkeypatch.setattr(deadlines, "busy_factor", lambda: 100.0)
    monkeypatch.setattr(deadlines, "MOST_TIMES", 0.2)
    workers: list[WorkerProcess] = []
    found = examined(
        composed(WAITS, after=True), components=["Attention", "ViT"], limits=QUICK, workers=workers
    )
    tried = [f for f in found.findings if f.status != "passed"]
    assert {(f.status, f.blame) for f in tried} == {(Status.ERRORED, Blame.ENGINE)}
    assert {f.component for f in tried} == {"Attention", "ViT"}
    assert {f.kind for f in tried} == {FindingKind.BUSY_MACHINE}
    assert {f.message for f in tried} == {f"{deadlines.BusyMachineError()} It costs no points."}
    assert len(workers) == 1


def test_a_death_is_named_and_the_rest_goes_on(
    composed: Callable[..., str], examined: Callable[..., Any]
) -> None:
    """A program that leaves in the middle of a check."""
    part = "import os\n\nclass FeedForward(FeedForward):\n    def forward(self, x):\n        os._exit(3)\n"
    found = examined(composed(part, after=True), components=["FeedForward", "PreNorm"])
    counts = by_component(found)
    assert set(counts["PreNorm"]) == {"passed"}
    own = [f for f in found.findings if f.component == "FeedForward"]
    assert {f.kind for f in own if f.status == "failed"} == {FindingKind.DIES}
    assert [f.check for f in own if f.status == "passed"] == ["feed_forward_has_two_layers"], "none is called"


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("line", "words"), [("__import__('os')._exit(0)", "ended"), ("while True: pass", "within 2 s")]
)
def test_a_file_that_cannot_be_loaded_is_tried_once(
    examined: Callable[..., Any],
    analyzed: Callable[[str], Program],
    solved: str,
    line: str,
    words: str,
) -> None:
    """A hang or an exit while loading costs one limit altogether; every check says so."""
    text = solved.replace("class PreNorm(nn.Module):", f"class PreNorm(nn.Module):\n    {line}\n")
    workers: list[WorkerProcess] = []
    parts, limits = ["PreNorm", "evaluate", "submission"], {"load_seconds": 2.0}
    found = examined(text, components=parts, limits=limits, workers=workers)
    assert len(workers) == 1
    of_parts = [f for f in found.findings if f.check != "names_are_the_templates"]
    assert {(f.status, f.blame) for f in of_parts} == {("failed", "student")}
    assert all("Loading the file failed" in f.message for f in of_parts)
    assert words in of_parts[0].message


def test_the_first_finding_waits_for_no_worker(
    assignment: Assignment, analyzed: Callable[[str], Program], solved: str
) -> None:
    """What the text alone tells comes first, while the file is still being loaded."""
    public = replace(assignment, checks=tuple(spec for spec in assignment.checks if spec.public))
    told: list[tuple[str, str, int]] = []
    asked: list[None] = []

    def spawn() -> WorkerProcess:
        asked.append(None)
        raise WorkerFault("death", "there is none")

    def use(checks: Checks) -> None:
        student = Student(spawn, analyzed(solved), public)
        checks.examined(
            student,
            report=lambda found: told.append((found.check, found.status, len(asked))),
            components=["submission"],
        )

    run_pytest(public_checks(assignment.folder / "checks"), public, None, use)
    assert told == [("names_are_the_templates", "passed", 0), ("file_can_be_loaded", "failed", 1)]


def test_tests_around_an_assignment_do_not_matter(tmp_path: Path, assignment: Assignment) -> None:
    """A course may lie in a project with tests of its own: what configures those does not count."""
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["plugins_of_another_project"]\n')
    folder = copied_assignment(assignment.folder, tmp_path)
    used: list[Checks] = []
    run_pytest([folder / "checks" / "test_prenorm.py"], replace(assignment, folder=folder), None, used.append)
    assert len(used) == 1


@pytest.mark.slow
def test_the_reference_earns_everything_whatever_the_seed(
    solved: str, examined: Callable[..., Any], assignment: Assignment
) -> None:
    """Fresh inputs for every run; one finding per declared check, in the assignment's order."""
    found = examined(solved, seed=1)
    assert [f.check for f in found.findings] == [spec.id for spec in assignment.checks]
    assert [f.check for f in found.findings if f.status != "passed"] == []
    models = ("PreNorm", "FeedForward", "Attention", "Transformer", "ViT", "train_epoch", "evaluate")
    for seed in (2, 3):
        again = examined(solved, seed=seed, components=models)
        assert [f.check for f in again.findings if f.status != "passed"] == []
    assert found.parameters == 499_462
    assert sum(layer.parameters for layer in found.layers) == 499_462
    assert {component for component, _ in found.figures} >= {
        "plot_confusion_matrix",
        "plot_classwise_predictions",
    }


@pytest.mark.slow
def test_the_same_seed_gives_the_same_findings(
    composed: Callable[..., str], examined: Callable[..., Any]
) -> None:
    """A check's inputs do not depend on the checks before it."""
    part = "class FeedForward(FeedForward):\n    def forward(self, x):\n        return self.net(x) * 1.5\n"
    text = composed(part, after=True)

    def findings(*components: str) -> list[Any]:
        found = examined(text, components=components, seed=7).findings
        return [replace(f, seconds=0.0) for f in found if f.component == "FeedForward"]

    assert findings("FeedForward", "PreNorm") == findings("FeedForward")
    assert [f.status for f in findings("FeedForward")].count("failed") == 1


@pytest.mark.slow
def test_messages_show_no_hidden_values(
    composed: Callable[..., str], examined: Callable[..., Any], course_root: Any
) -> None:
    """No tracebacks, no paths of ours, no tensors, no numbers with many digits."""
    part = """
class Attention(Attention):
    def forward(self, x):
        return super().forward(x) * 1.37

def evaluate(model, data_loader, loss_history):
    model.eval()
    loss_history.append(0.123)

def plot_confusion_matrix(model, data_loader, class_names):
    raise RuntimeError("my own words")
"""
    found = examined(composed(part, after=True))
    text = "\n".join(f"{f.message}\n{f.hint}" for f in found.findings)
    assert "my own words" in text
    for hidden in ("Traceback", "assert ", "tensor(", str(course_root), "site-packages", "test_attention"):
        assert hidden not in text
    assert not re.search(r"\d\.\d{4}", text)


def test_a_missing_name_is_told(solved: str, examined: Callable[..., Any]) -> None:
    """A part that the file does not define."""
    text = solved.replace("def evaluate(", "def assess(").replace("evaluate(", "assess(")
    found = examined(text, components=["evaluate", "submission"])
    lost = {f.check: f for f in found.findings if f.status != "passed"}
    assert "evaluate" in lost["file_can_be_loaded"].message
    assert all("evaluate" in f.message for f in lost.values())


@pytest.mark.slow
def test_inline_parts_are_proven_all_the_same(
    composed: Callable[..., str], examined: Callable[..., Any]
) -> None:
    """A fake that is never called decides nothing: a part written inline is judged with the whole."""
    part = """
class Transformer(nn.Module):
    def __init__(self, dim, depth, heads, dim_head, mlp_dim, dropout=0.0):
        super().__init__()
        self.layers = nn.ModuleList()
        for _ in range(depth):
            net = nn.Sequential(
                nn.Linear(dim, mlp_dim), nn.GELU(), nn.Dropout(dropout), nn.Linear(mlp_dim, dim)
            )
            attention = PreNorm(dim, Attention(dim, heads, dim_head, dropout))
            self.layers.append(nn.ModuleList([attention, PreNorm(dim, net)]))

    def forward(self, x):
        for attention, net in self.layers:
            x = x + attention(x)
            x = x + net(x)
        return x
"""
    assert part.count("x = x + net(x)") == 1
    for text, wrong in ((part, False), (part.replace("x = x + net(x)", "x = net(x)"), True)):
        found = examined(composed(text), components=["Transformer", "ViT"])
        lost = {f.component: f for f in found.findings if f.status != "passed"}
        assert set(lost) == ({"Transformer"} if wrong else set())
        assert all((f.status, f.blame) == ("failed", "student") for f in lost.values())


LIES: list[Callable[[Frame], Frame]] = [
    lambda frame: Frame(frame.document, {}),
    lambda frame: Frame(frame.document, {k: np.zeros(3, dtype=np.int64) for k in frame.arrays}),
    lambda frame: Frame(frame.document, {k: v[..., None] for k, v in frame.arrays.items()}),
    lambda frame: Frame({**frame.document, "arrays": {"output": [1]}}, frame.arrays),
]


@pytest.mark.parametrize("lie", LIES)
def test_lies_in_arrays_are_the_workers_fault(
    lie: Callable[[Frame], Frame],
    tampered: Callable[..., Any],
    spawn: Callable[[], Any],
    analyzed: Callable[[str], Program],
    solved: str,
    assignment: Assignment,
) -> None:
    """Whatever arrays a worker sends, a check gets numbers of the right kind, or nothing."""

    def change(frame: Frame) -> Frame:
        return frame if frame.document.get("$kind") in ("Loaded", "Built", "Done") else lie(frame)

    student = Student(lambda: tampered(spawn(), change), analyzed(solved), assignment, seed=1)
    try:
        x = student.tensor(2, 5, 22)
        for ask in (
            lambda: student.build("PreNorm", 22, inner=AffineFake())(x, shape=(2, 5, 22)),
            lambda: student.build("FeedForward", 22, 31).gradients(x, x),
            lambda: student.build("FeedForward", 22, 31).weights(),
        ):
            with pytest.raises((Mismatch, WorkerFault)):
                ask()
    finally:
        student.close()


@pytest.mark.slow
def test_a_slow_part_costs_no_other_part(
    examined: Callable[..., Any], solved: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It uses up the time of all checks together; the others have their share of it all the same."""
    monkeypatch.setattr("grader.protocol.deadlines.busy_factor", lambda: 1.0)
    slow = solved.replace(
        "        return self.net(x)", "        time.sleep(1)\n        return self.net(x)", 1
    )
    assert "time.sleep" in slow[slow.index("class FeedForward") : slow.index("class Attention")]
    done = examined(
        f"import time\n{slow}",
        components=("ViT", "FeedForward", "PreNorm", "Transformer"),
        limits={"checks_seconds": 8.0},  # a share of one second, which a busy machine keeps
    )
    skipped = {found.component for found in done.findings if found.status == "skipped"}
    assert skipped == {"FeedForward"}
    passed = {found.component for found in done.findings if found.status == "passed"}
    assert passed >= {"ViT", "PreNorm", "Transformer"}
    order = [found.component for found in done.findings]
    assert "Transformer" in order[order.index("FeedForward") :], "none comes after it: this shows nothing"


HEAD = "import pytest\npytestmark = pytest.mark.component('Doubler')\n"
TEST = 'def test_one(student):\n    """One."""\n'


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "import nothing_there\n",
            "checks/test_a.py:3: importing it raised ModuleNotFoundError: No module named 'nothing_there'. "
            "Fix it.",
        ),
        (
            "def half(x):\n    return x / 0\n\nHALF = half(1)\n",
            "checks/test_a.py:4: importing it raised ZeroDivisionError: division by zero. Fix it.",
        ),
        (
            "@pytest.mark.parametrize('side', [1, 2])\n",
            "checks/test_a.py: pytest cannot collect its checks: In checks/test_a.py::test_one: function "
            "uses no argument 'side'. Fix it.",
        ),
    ],
)
def test_checks_that_cannot_be_collected_are_told_with_the_line(
    tiny_course: Path, text: str, sentence: str
) -> None:
    """In a sentence, where pytest writes a page with a traceback."""
    folder = tiny_course / "reference" / "tiny"
    file = folder / "checks" / "test_a.py"
    file.write_text(HEAD + text + TEST, encoding="utf-8")
    with pytest.raises(CourseError) as caught:
        run_pytest([file], read_assignment(folder), None, lambda checks: None)
    assert str(caught.value) == sentence
