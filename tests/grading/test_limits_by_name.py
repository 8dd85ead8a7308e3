"""Each limit, when a submission hits it, is told by its name; and the judge has limits of its own."""

import io
import re
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

import pytest
from pydantic import TypeAdapter

from grader.analysis import program
from grader.course.assignment_file import read_assignment
from grader.domain.assignment import Assignment, ProgramRules
from grader.domain.errors import EngineError, SandboxError
from grader.domain.evidence import Attestation, Blame, Finding, FindingKind, Status
from grader.domain.program_run import Ending
from grader.grading import judging
from grader.grading.judging import Judged, _require_machine, judged
from grader.judge.verdict import finding
from grader.protocol.deadlines import MOST_TIMES, BusyMachineError
from grader.protocol.frames import Frame, write_frame
from grader.sandbox.host_client import Host
from tests.warm_hosts import WarmHosts

# what a check does with an answer of 7, 8 or 9 stands for any computation that an answer can blow up
TRAPS = '''
import time
import pytest
import torch
from grader.kit import Mismatch

pytestmark = pytest.mark.component("Doubler")


def test_answer_is_computed_with(student):
    """Doubler's answer can be computed with."""
    answer = student.build("Doubler", 3)(student.tensor(2, 3))
    code = int(answer.max()) if bool((answer == answer[0, 0]).all()) else 0
    if code == 7:
        while True:
            code = code * 1
    if code == 8:
        held = [torch.empty(100_000_000) for _ in range(100)]
    if code == 9:
        sum(range(10**12))


def test_z_the_last_one(student):
    """Doubler can be made."""
    student.build("Doubler", 3)
'''
SOURCE = """
import os, threading, time
import torch
from torch import nn


class Doubler(nn.Module):
    def __init__(self, dim):
        super().__init__()

    def forward(self, x):
        {line}
        return 2 * x
"""
Judging = Callable[..., Judged]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory, tiny_files: dict[str, str]) -> Assignment:
    """The small assignment, with checks that compute with what is answered."""
    root = tmp_path_factory.mktemp("course")
    for name, text in {**tiny_files, "reference/tiny/checks/test_traps.py": TRAPS}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return read_assignment(root / "reference" / "tiny")


@pytest.fixture(scope="module")
def hosts(tiny: Assignment, warm_hosts: WarmHosts) -> Iterator[tuple[Host, Host]]:
    """Judges and workers, as in grading."""
    with (
        warm_hosts.shared(),
        Host.start("grader.worker", hidden=(tiny.folder,), wrapped=True) as workers,
        Host.start("grader.judge", [str(tiny.folder)]) as judges,
    ):
        yield judges, workers


@pytest.fixture(scope="module")
def judge(tiny: Assignment, hosts: tuple[Host, Host]) -> Judging:
    """What is said of a Doubler with a line in its forward, within limits."""

    def of(line: str, **limits: float) -> Judged:
        assignment = replace(tiny, limits=replace(tiny.limits, **limits))
        source = SOURCE.format(line=line).encode()
        parsed = program("homework.py", source, ProgramRules(tiny.components, ()))
        return judged(*hosts, parsed, assignment, seed=3, report=lambda finding: None)

    return of


LIMITS: dict[str, tuple[str, dict[str, float], str]] = {
    "file": (
        "open('big', 'wb').write(bytes(3_000_000))",
        {"file_mb": 2},
        "its limit is 2 MB for one file",
    ),
    "memory": (
        "y = [0] * 500_000_000",
        {"memory_mb": 700},
        "limit of 700 MB of memory|limit is 700 MB of memory",
    ),
    "tensors": (
        "y = torch.ones(10**9)",
        {"memory_mb": 700},
        "limit of 700 MB of memory|limit is 700 MB of memory",
    ),
    "processor": (
        "while True: pass",
        {"checks_seconds": 1.0},
        "more than its limit of 2 s of processor time",
    ),
    "checkpoint": (
        "torch.save(torch.zeros(10**6), 'a.pth')",
        {"file_mb": 2},
        "its limit is 2 MB for one file and 256 MB in all",
    ),
    "disk": (
        "[open(str(i), 'wb').write(bytes(50_000_000)) for i in range(6)]",
        {},
        "its limit is 256 MB of files",
    ),
    "threads": (
        "for _ in range(20): threading.Thread(target=time.sleep, args=(60,), daemon=True).start()",
        {"processes": 9},
        "its limit is 9 processes and threads",
    ),
    "descriptors": ("y = [open('/dev/null') for _ in range(300)]", {}, "its limit is 256 open files"),
    "call": ("time.sleep(60)", {"call_seconds": 1.0}, "did not return within 1 s"),
}


@pytest.mark.sampled(8)
@pytest.mark.parametrize("limit", LIMITS)
def test_a_limit_that_is_hit_is_named(limit: str, judge: Judging) -> None:
    """In the finding, which is the student's."""
    line, limits, words = LIMITS[limit]
    found = judge(line, **limits).findings
    first = next(f for f in found if f.status is not Status.PASSED)
    assert (first.status, first.blame) == ("failed", "student")
    assert re.search(words, first.message), first.message
    assert all(f.blame == "student" for f in found if f.status is not Status.PASSED)


@pytest.mark.slow
def test_a_slow_submission_runs_out_of_its_time(judge: Judging) -> None:
    """Every call within its limit: the checks that are left are skipped, with the total limit named.

    Two calls take longer than the limit and all that a busy machine adds to it, so that its load decides
    nothing.
    """
    most = 0.9 * (1 + MOST_TIMES)
    found = judge(f"time.sleep({0.6 * most})", call_seconds=8.0, checks_seconds=0.9).findings
    left = [f for f in found if f.status is Status.SKIPPED]
    assert left and {f.blame for f in left} == {"student"}
    assert all("the code took over 1 s, the limit for all checks together" in f.message for f in left)
    assert found[0].status is Status.PASSED


def test_output_that_is_cut_is_noted(judge: Judging) -> None:
    """However it is printed; and ordinary printing is not."""
    for line in ("print('x' * 60_000)", "os.write(2, b'x' * 60_000)"):
        assert "limit of 50 kB" in judge(line, output_kb=50).notes[0].text
    result = judge("print('hello')", output_kb=50)
    assert result.notes == () and {f.status for f in result.findings} == {Status.PASSED}


# --- the judge's own limits -------------------------------------------------------------------------------


def by_check(found: Judged) -> dict[str, Finding]:
    """The findings by their checks, of which none may come twice."""
    findings = {finding.check: finding for finding in found.findings}
    assert len(findings) == len(found.findings)
    return findings


@pytest.mark.sampled(8)
@pytest.mark.parametrize(
    ("answer", "words"), [(7, "computed for more than 2 s"), (8, "memory was not enough")]
)
def test_an_answer_that_blows_up_a_check_leaves_that_check_undecided(
    answer: int, words: str, judge: Judging, tiny: Assignment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is the engine's business, costs no points, and the other checks go on."""
    monkeypatch.setattr(judging, "JUDGE_LIMITS", replace(judging.JUDGE_LIMITS, memory_mb=1_000))
    found = by_check(judge(f"return torch.full_like(x, {answer})", call_seconds=1.0))
    assert set(found) == {spec.id for spec in tiny.checks}
    trapped = found["answer_is_computed_with"]
    assert (trapped.status, trapped.blame) == ("errored", "engine")
    assert words in trapped.message
    assert found["z_the_last_one"].status is Status.PASSED


@pytest.mark.slow
def test_a_judge_that_cannot_be_interrupted_is_ended_alone(
    judge: Judging, tiny: Assignment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it had found counts, the rest is undecided, and the next submission has a judge of its own."""
    monkeypatch.setattr(judging, "JUDGE_LIMITS", replace(judging.JUDGE_LIMITS, cpu_seconds=3))
    found = by_check(judge("return torch.full_like(x, 9)"))
    assert set(found) == {spec.id for spec in tiny.checks}
    assert found["doubler_keeps_the_shape"].status is Status.PASSED
    for check in ("answer_is_computed_with", "z_the_last_one"):
        assert (found[check].status, found[check].blame) == ("errored", "engine")
        assert "limit of 3 s of processor time" in found[check].message
    assert {f.status for f in judge("pass").findings} == {Status.PASSED}


# --- every finding once -----------------------------------------------------------------------------------


@dataclass
class Scripted:
    """A judge host whose judges say what a test makes them say."""

    frames: list[Frame]
    address: str = "nowhere"

    def spawn(self, limits: Any) -> Any:
        stream = io.BytesIO()
        for frame in self.frames:
            write_frame(stream, frame)
        self.reader = io.BytesIO(stream.getvalue())
        self.writer = io.BytesIO()
        return self

    def kill(self) -> None:
        pass

    close = kill

    def ending(self) -> Ending:
        return Ending("it was ended by signal 9")


DONE = {
    "done": True,
    "parameters": None,
    "layers": [],
    "figures": [],
    "absent_modules": [],
    "watched": {},
    "output_cut": False,
    "attestation": asdict(Attestation("strict", {})),
}


def said(tiny: Assignment, *frames: Frame) -> Judged:
    """What is made of a judge's frames."""
    parsed = program("homework.py", b"x = 1", ProgramRules(tiny.components, ()))
    host: Any = Scripted(list(frames))
    return judged(host, host, parsed, tiny, seed=1, report=lambda finding: None)


def passed(check: str, component: str = "Doubler") -> Frame:
    """A finding's frame."""
    finding = Finding(check, component, "title", Status.PASSED)
    return Frame({"finding": TypeAdapter(Finding).dump_python(finding, mode="json")})


@pytest.mark.parametrize("ending", [[Frame(DONE)], []], ids=["done", "died"])
def test_every_check_has_one_finding_whatever_the_judge_left_out(
    tiny: Assignment, ending: list[Frame]
) -> None:
    """A missing one is undecided: not passed, and not failed."""
    found = by_check(said(tiny, passed("doubler_doubles"), *ending))
    assert set(found) == {spec.id for spec in tiny.checks}
    undecided = [f for f in found.values() if f.check != "doubler_doubles"]
    assert {(f.status, f.blame) for f in undecided} == {("errored", "engine")}


@pytest.mark.parametrize(
    "frames",
    [
        [passed("doubler_doubles"), passed("doubler_doubles")],
        [passed("another")],
        [passed("doubler_doubles", "submission")],
    ],
    ids=["twice", "unknown", "of another component"],
)
def test_a_finding_that_was_not_asked_for_is_our_failure(tiny: Assignment, frames: list[Frame]) -> None:
    with pytest.raises(EngineError, match="was not asked for, or came twice"):
        said(tiny, *frames, Frame(DONE))


def test_findings_of_a_machine_that_was_too_busy_are_no_result():
    """The submission counts as not examined: the next run examines it again."""
    passed = Finding("a", "Attention", "A check.", Status.PASSED)
    refused = replace(
        passed, status=Status.ERRORED, blame=Blame.ENGINE, message="What.", kind=FindingKind.BUSY_MACHINE
    )
    _require_machine([passed, replace(refused, kind=None)])
    with pytest.raises(BusyMachineError, match="Run the same command again"):
        _require_machine([passed, refused])


def test_findings_of_a_machine_that_gave_the_code_no_process_are_no_result(tiny: Assignment) -> None:
    """As where the process that makes them was ended, by the machine for want of memory."""
    spec = tiny.checks[0]
    refused = finding(spec, SandboxError("A host process does not answer."))
    _require_machine([finding(spec, None), finding(spec, EngineError("Another fault."))])
    with pytest.raises(SandboxError, match="does not answer"):
        _require_machine([finding(spec, None), refused])
