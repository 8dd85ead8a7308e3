"""A class of 30 in which every third submission attacks, against the same class without them.

It is of the small assignment, so that it takes little time; `batch.py` makes such a class of the real one.
"""

import json
from datetime import UTC, datetime
from functools import partial

import pytest

from grader.course.assignment_file import read_assignment
from grader.course.locate import located_course
from grader.domain.errors import SandboxError
from grader.gradebook import Gradebook
from grader.grading.class_run import graded
from grader.grading.examiner import OnThisMachine
from grader.grading.run import Run, running_hosts
from grader.grading.submission_draws import draws_of
from grader.intake import submissions
from grader.results.class_files import write_class

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SIZE = 30
LIMITS = "\n[limits]\nload_seconds = 4\ncall_seconds = 2\nmemory_mb = 600\n"
HOMEWORK = """
import os
import signal
import sys
import torch
from torch import nn


class Doubler(nn.Module):
    {load}
    def __init__(self, dim):
        super().__init__()

    def forward(self, x):
        {call}
        return {factor} * x
"""
# what each attacker does while it is loaded, or when it is called
ATTACKS = {
    "never loads": ("while True: pass", "pass"),
    "never returns": ("pass", "while True: pass"),
    "is deaf": ("pass", "[signal.signal(n, signal.SIG_IGN) for n in (1, 2, 15)]; sum(iter(int, 1))"),
    "takes memory": ("kept = [bytes(10**8) for _ in range(10**6)]", "pass"),
    "leaves": ("os._exit(0)", "pass"),
    "kills": ("pass", "os.kill(-1, 9)"),
    "forks": ("pass", "[os.fork() for _ in range(100)]"),
    "floods": ("[os.write(1, b'x' * 10**6) for _ in range(50)]", "os.write(4, b'GRF1' * 10**6)"),
    "talks": ("pass", "os.write(4, b'GRF1' + bytes(12))"),
    "fills": ("pass", "[open(f'/tmp/{n}', 'wb').write(bytes(10**7)) for n in range(10**4)]"),
}


@pytest.fixture
def course(tiny_course):
    """The small course with short limits."""
    path = tiny_course / "reference" / "tiny" / "assignment.toml"
    path.write_text(path.read_text(encoding="utf-8") + LIMITS, encoding="utf-8")
    return located_course(tiny_course, environment={})


def class_of(folder, *, attacked):
    """The class's folder: right and wrong homework in turn, and an attacker in every third place."""
    for number in range(SIZE):
        attacks = number % 3 == 2
        load, call = list(ATTACKS.values())[number // 3] if attacks else ("pass", "pass")
        if attacked or not attacks:
            text = HOMEWORK.format(load=load, call=call, factor=3 if number % 4 == 1 else 2)
            (folder / str(1000 + number)).mkdir(parents=True)
            (folder / str(1000 + number) / f"{1000 + number}_homework.py").write_text(text, encoding="utf-8")
    return folder


def entries(out):
    """What results.json says of every student but the number of its process's user and the file's time."""
    document = json.loads((out / "results.json").read_text(encoding="utf-8"))
    for entry in document["submissions"]:
        entry["sandbox"] = entry["sandbox"]["level"]
        entry["received_hint"] = None
    return {entry["student_id"]: entry for entry in document["submissions"]}


@pytest.mark.slow
def test_honest_results_are_those_of_a_class_without_attackers(course, tmp_path, traces_of, lasting):
    assignment = read_assignment(course.root / "reference" / "tiny")
    results, pids = {}, set()

    def traces():
        return traces_of(lambda pid: pid in pids)

    before = traces()
    try:
        with running_hosts(course, assignment, hidden=(tmp_path,), unofficial=False) as hosts:
            pids |= {host._process.pid for host in (hosts.parsers, hosts.judges, hosts.workers)}
            for attacked in (True, False):
                out = tmp_path / f"out {attacked}"
                folder = class_of(tmp_path / f"class {attacked}", attacked=attacked)
                uploads = submissions(folder, assignment, tmp_path / "scratch")
                run = Run(partial(draws_of, course, assignment), assignment, None, hosts)
                with Gradebook(out, assignment_id=assignment.id) as book:
                    found = graded(
                        OnThisMachine(run),
                        uploads.submissions,
                        out,
                        jobs=2,
                        book=book,
                        clock=lambda: NOW,
                        watch=lambda progress: None,
                    )
                write_class(assignment, found, out, NOW)
                results[attacked] = entries(out)
    except SandboxError as error:
        pytest.skip(f"this machine gives too little isolation: {error}")
    assert len(results[True]) == SIZE and len(results[False]) == SIZE - len(ATTACKS)
    assert {name: results[True][name] for name in results[False]} == results[False]
    totals = {name: entry["total"] for name, entry in results[True].items()}
    assert [totals[str(1000 + number)] for number in range(0, SIZE, 12)] == [4, 4, 4]
    attackers = {name: totals[str(1002 + 3 * place)] for place, name in enumerate(ATTACKS)}
    assert not any(attackers.values()), attackers
    assert not lasting(traces, before)
