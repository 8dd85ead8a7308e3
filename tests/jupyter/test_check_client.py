"""The kernel's end of the process that makes the checks."""

import os
from pathlib import Path

import pytest

from grader.domain.errors import EngineError
from grader.jupyter.kernel import CheckProcess

SERVICE = """
import json, os, sys
for line in sys.stdin:
    request = json.loads(line)
    if request["part"] == "dies":
        sys.exit("Something is wrong.")
    if request["part"] == "hangs":
        print(json.dumps({"last": False}), flush=True)
        continue
    answer = {"part": request["part"], "pid": os.getpid(), "group": os.getpgrp(),
              "backend": os.environ.get("MPLBACKEND"), "last": False}
    print(json.dumps(answer))
    print(json.dumps({**answer, "last": True}), flush=True)
"""


@pytest.fixture
def process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A process with a service that computes nothing."""
    (tmp_path / "small_service.py").write_text(SERVICE, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    made = CheckProcess("small_service")
    yield made
    made.close()


def test_one_process_answers_all_and_is_not_interrupted_with_the_kernel(process):
    first, second = list(process.answers({"part": "a"})), list(process.answers({"part": "b"}))
    assert [answer["last"] for answer in first] == [False, True]
    assert first[0]["pid"] == second[0]["pid"] and second[0]["part"] == "b"
    assert first[0]["group"] != os.getpgrp() and first[0]["backend"] is None


def test_one_that_ended_says_why_and_is_replaced(process):
    [before, _] = process.answers({"part": "a"})
    with pytest.raises(EngineError, match=r"ended \(Something is wrong\.\)\. Check again\."):
        list(process.answers({"part": "dies"}))
    [after, _] = process.answers({"part": "a"})
    assert after["pid"] != before["pid"]


def test_one_that_is_closed_has_ended(process):
    asked = process.answers({"part": "hangs"})
    next(asked)
    running = process._process
    process.close()
    assert running.poll() is not None
    assert len(list(process.answers({"part": "a"}))) == 2


def test_a_python_that_is_not_there_is_a_sentence(process, monkeypatch):
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    with pytest.raises(EngineError, match="Is /nowhere/python intact"):
        list(process.answers({"part": "a"}))
