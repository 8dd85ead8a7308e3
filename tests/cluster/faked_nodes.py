"""Dask loads this in the workers of tests: nodes that examine nothing, and do what a homework's text says.

A homework is a list of words: `passes` or `fails`, `kills` (the process that examines it), `waits=SECONDS`,
`asks=FILE` (it waits until that is there). What the node itself is like stands in `$FAKED_NODE`, as JSON.
"""

import contextlib
import json
import os
import signal
import time
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from grader.cluster import node_work
from grader.domain.errors import SandboxError
from grader.domain.evidence import Attestation, Finding, Status
from grader.domain.submission import Submission
from grader.grading import examiner
from grader.grading.run import EvidenceBuilder, Run
from grader.grading.submission_run import blank_evidence

NODE: dict[str, Any] = json.loads(os.environ.get("FAKED_NODE", "{}"))


@contextlib.contextmanager
def hosts(*arguments: Any, **options: Any) -> Any:
    """In place of the hosts of a run: something that is there, and is gone in the end."""
    if NODE.get("weak"):
        raise SandboxError("This machine gives too little isolation.")
    if NODE.get("dies"):
        os.kill(os.getpid(), signal.SIGKILL)
    yield SimpleNamespace(isolation=Attestation("strict"))


def examined(
    run: Run, submission: Submission, *, attempt: int, graded_at: datetime, watch: Any
) -> EvidenceBuilder:
    """What a homework says of itself."""
    words = submission.files[0].read_text(encoding="utf-8").split()
    said = dict(word.partition("=")[::2] for word in words)
    log = os.environ.get("FAKED_LOG")
    if log:
        with Path(log).open("a", encoding="utf-8") as noted:
            noted.write(f"{submission.student_id} {os.getpid()}\n")
    time.sleep(float(said.get("waits", 0)))
    if "kills" in said:
        os.kill(os.getpid(), signal.SIGKILL)
    while "asks" in said and not Path(said["asks"]).exists():
        time.sleep(0.02)
    status = Status.PASSED if "passes" in said else Status.FAILED
    findings = tuple(
        Finding(s.id, s.component, s.title, status, message="It says so.") for s in run.assignment.checks
    )
    blank = blank_evidence(run, submission, attempt=attempt, graded_at=graded_at)
    evidence = replace(blank, findings=findings, attestation=Attestation("strict"))
    return EvidenceBuilder(evidence, {"figure-0.png": submission.student_id.encode() * 100})


def dask_setup(worker: Any) -> None:
    """Take the places of what a node does."""
    examiner.examined = examined
    fakes: dict[str, Any] = {"running_hosts": hosts}
    if "versions" in NODE:
        fakes["version"] = NODE["versions"].__getitem__
    if "device" in NODE:
        fakes["training_device"] = lambda wanted, **_: NODE["device"]
    if "lease" in NODE:
        fakes |= {"LEASE_SECONDS": NODE["lease"], "LOOK_SECONDS": 0.2}
    for name, fake in fakes.items():
        assert hasattr(node_work, name)
        setattr(node_work, name, fake)
