"""Whatever happens to nodes and to the coordinator, nothing is lost or doubled, and nobody is blamed.

The cluster is a real one; its nodes isolate and examine nothing (see `faked_nodes`), so that it starts in a
moment. `test_same_marks` has real ones.
"""

import json
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from grader.gradebook import Gradebook
from tests.foreign_cluster import ForeignCluster, foreign_cluster
from tests.loopback_servers import wait_until

pytestmark = pytest.mark.slow
# a class of forty, twenty kills of nodes and five of the coordinator take ten minutes: with ALL_KILLS
ALL = bool(os.environ.get("ALL_KILLS"))
SIZE, KILLS, KILLS_OF_COORDINATOR = (40, 20, 5) if ALL else (14, 4, 1)

# `grader`, but for the seconds that it waits
GRADER = """
import json, sys
from grader.cluster import nodes
from grader.cli import main
for name, value in json.loads(sys.argv.pop(1)).items():
    assert hasattr(nodes, name)
    setattr(nodes, name, value)
main()
"""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[ForeignCluster]:
    """A cluster without nodes."""
    with foreign_cluster(tmp_path / "cluster") as started:
        yield started


class Course:
    """A class of the small assignment, and the command that grades it on a cluster."""

    def __init__(self, course: Path, folder: Path, cluster: ForeignCluster) -> None:
        """Nothing is handed in yet."""
        self.out = folder / "out"
        self.handed_in = folder / "class"
        self._course = course
        self._cluster = cluster

    def hand_in(self, **homework: str) -> None:
        """Write homework, by the student's number behind an `s`."""
        for student, text in homework.items():
            folder = self.handed_in / student[1:]
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{student[1:]}_homework.py").write_text(text, encoding="utf-8")

    def start(self, *options: str, **seconds: float) -> "subprocess.Popen[str]":
        """Begin to grade.

        Args:
            seconds: Constants of `grader.cluster.nodes`.
        """
        command = [sys.executable, "-c", GRADER, json.dumps(seconds), "grade", str(self.handed_in)]
        command += ["--course", str(self._course), "--assignment", "tiny", "--no-train", "--by", "ta1"]
        command += ["--out", str(self.out), "--cluster", self._cluster.url, *options]
        return subprocess.Popen(
            command,
            env=dict(self._cluster.env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def graded(self, *options: str, **seconds: float) -> str:
        """What grading says."""
        run = self.start(*options, **seconds)
        try:
            said, _ = run.communicate(timeout=400)
        finally:
            run.kill()
        return said

    def entries(self) -> dict[str, dict[str, Any]]:
        """What results.json says of each student."""
        document = json.loads((self.out / "results.json").read_text(encoding="utf-8"))
        return {entry["student_id"]: entry for entry in document["submissions"]}

    def statuses(self) -> dict[str, list[str]]:
        """The status of each student's runs, oldest first."""
        with Gradebook(self.out, assignment_id="tiny") as book:
            return {
                student: [
                    evidence.status or "graded"
                    for _, evidence in book.history(student)
                    if evidence is not None
                ]
                for student in book.students()
            }


@pytest.fixture
def course(tiny_course: Path, tmp_path: Path, cluster: ForeignCluster) -> Course:
    """A class in which nobody has handed anything in."""
    return Course(tiny_course, tmp_path, cluster)


def test_kills_of_nodes_and_of_the_coordinator(course: Course, cluster: ForeignCluster) -> None:
    """At random moments: of processes, which are started anew on their nodes, and of whole nodes."""
    moments = random.Random(25)
    homework = {
        f"s{1000 + number}": f"{'passes' if number % 3 else 'fails'} waits={moments.uniform(0.5, 3):.2f}"
        for number in range(SIZE)
    }
    course.hand_in(**homework)
    names = ["lab1", "lab2", "lab3"]
    for name in names:
        cluster.start(name)
    doomed = ["process"] * (KILLS // 2) + ["node"] * (KILLS // 2) + ["run"] * KILLS_OF_COORDINATOR
    moments.shuffle(doomed)
    run, begun = course.start(), 0
    try:
        for what in doomed:
            wait_until(lambda least=begun: len(examined(cluster)) > least, "it grades", 200, [run])  # type: ignore[misc]
            time.sleep(moments.uniform(0.1, 2))
            wait_until(lambda: bool(at_work(cluster)), "a node is at work", 200, [run])
            busy = at_work(cluster)
            if what == "run":
                run.kill()
                run.communicate()
                run, begun = course.start(), len(examined(cluster))
            elif what == "process":
                cluster.workers(moments.choice(busy))[0].kill()
            else:
                name = moments.choice(busy)
                cluster.kill(name)
                cluster.start(name)
        assert run.poll() is None and len(course.statuses()) < SIZE, "the class was done too early"
        said, _ = run.communicate(timeout=600)
    finally:
        run.kill()
    set_aside = {student for student, runs in course.statuses().items() if runs[-1] == "engine_error"}
    assert run.returncode == 0 and len(course.statuses()) == SIZE, said
    if set_aside:
        said = course.graded()
    entries, statuses = course.entries(), course.statuses()
    assert len(entries) == SIZE
    for student, text in homework.items():
        entry = entries[student[1:]]
        assert (entry["status"], entry["total"]) == ("graded", 4 if "passes" in text else 0), entry
        # what a person was to look at has been graded since
        assert [status for status in statuses[student[1:]] if status != "engine_error"] == ["graded"]
        assert statuses[student[1:]][-1] == "graded"
    for name in names:
        cluster.end(name)
    assert not folders(cluster)


def at_work(cluster: ForeignCluster) -> list[str]:
    """The nodes whose processes have examined something."""
    pids = {pid for _, pid in examined(cluster)}
    return [name for name in cluster.nodes if any(own.pid in pids for own in cluster.workers(name))]


# --- suspects --------------------------------------------------------------------------------------------


def test_a_submission_that_takes_two_processes_with_it_is_set_aside_and_its_neighbors_are_not(
    course: Course, cluster: ForeignCluster
) -> None:
    course.hand_in(
        s1000="passes waits=1 kills", s1001="passes waits=2", s1002="fails waits=2", s1003="passes"
    )
    cluster.start("lab1", places=3)
    said = course.graded()
    entries = course.entries()
    assert [entries[student]["total"] for student in ("1001", "1002", "1003")] == [4, 0, 4], said
    suspect = entries["1000"]
    assert (suspect["status"], suspect["total"]) == ("engine_error", None) and suspect["awaiting"] == [
        "model"
    ]
    assert "died 2 times, on lab1 and lab1, the last time with nothing beside it" in suspect["reason"]
    begun = [student for student, _ in examined(cluster)]
    assert begun.count("1000") == begun.count("1001") == begun.count("1002") == 2
    assert course.statuses() == {
        "1000": ["engine_error"],
        "1001": ["graded"],
        "1002": ["graded"],
        "1003": ["graded"],
    }


# --- nodes that cannot be used ---------------------------------------------------------------------------


def said_until(run: "subprocess.Popen[str]", words: str, seconds: float = 200) -> str:
    """What the command says until these words."""
    assert run.stdout is not None
    stopping = threading.Timer(seconds, run.kill)
    stopping.start()
    said = ""
    try:
        while words not in said:
            line = run.stdout.readline()
            assert line, said
            said += line
    finally:
        stopping.cancel()
    return said


def test_nodes_that_cannot_be_used_are_named_and_without_others_what_is_done_is_kept(
    course: Course, cluster: ForeignCluster, tmp_path: Path
) -> None:
    course.hand_in(s1000="passes", s1001=f"passes asks={tmp_path / 'never'}")
    cluster.start("good")
    run = course.start(PATIENCE_SECONDS=3.0, RETURN_SECONDS=15.0)
    try:
        said_until(run, "1000: done")
        cluster.start("weak", weak=True)
        cluster.start("old", versions={"torch": "1.0", "numpy": version("numpy")})
        cluster.start("gpu", device="cuda")
        cluster.start("deadly", dies=True)
        awaited = {
            "node weak: This machine gives too little isolation.\n",
            f"node old: It has torch 1.0, and this machine torch {version('torch')}: results could differ. "
            "Install the same.\n",
            "node gpu: It trains on 'cuda', and others on 'cpu', so results would differ. Give --device cpu, "
            "or leave it out of the cluster.\n",
            "node deadly: Its process died 3 times while it got ready. Look at its memory and at the log of "
            "its system.\n",
        }
        said = ""
        while not all(sentence in said for sentence in awaited):
            said += said_until(run, "\n")
        cluster.kill("good")
        rest, _ = run.communicate(timeout=200)
    finally:
        run.kill()
    assert run.returncode == 2, rest
    last = rest.strip().splitlines()[-1]
    assert last.startswith("error: No node has been there for") and "weak: This machine" in last
    assert last.endswith("What is done is kept: the same command continues from there.")
    assert course.statuses() == {"1000": ["graded"]}


def test_a_scheduler_that_is_gone_ends_the_run_and_what_is_done_is_kept(
    course: Course, cluster: ForeignCluster, tmp_path: Path
) -> None:
    course.hand_in(s1000="passes", s1001=f"passes asks={tmp_path / 'never'}")
    cluster.start("lab1")
    run = course.start(RETURN_SECONDS=1.0)
    try:
        said_until(run, "1000: done")
        cluster.scheduler.kill()
        rest, _ = run.communicate(timeout=200)
    finally:
        run.kill()
    assert "error: The cluster's scheduler is gone. What is done is kept" in rest
    assert course.statuses() == {"1000": ["graded"]}


# --- a coordinator that is gone, silent, or not the only one ---------------------------------------------


def test_a_coordinator_that_is_gone_leaves_nothing_with_the_nodes(
    course: Course, cluster: ForeignCluster, tmp_path: Path
) -> None:
    course.hand_in(s1000=f"passes asks={tmp_path / 'now'}")
    cluster.start("lab1", lease=5)
    run = course.start(_RENEW_SECONDS=0.3)
    wait_until(lambda: bool(examined(cluster)), "a submission is examined", 200, [run])
    time.sleep(7)  # the lease is renewed
    assert folders(cluster)
    run.kill()
    run.communicate()
    wait_until(lambda: not folders(cluster), "the node has nothing of the run", 60)
    assert cluster.workers("lab1")
    (tmp_path / "now").touch()
    course.graded(_RENEW_SECONDS=0.3)
    assert course.statuses() == {"1000": ["graded"]}


def test_a_coordinator_that_was_silent_for_too_long_goes_on(course: Course, cluster: ForeignCluster) -> None:
    """What was under way then is examined again, and nobody is blamed."""
    course.hand_in(**{f"s{1000 + number}": "passes waits=1.2" for number in range(3)})
    cluster.start("lab1", places=1, lease=2.0)
    said = course.graded(_RENEW_SECONDS=1000.0)
    assert course.statuses() == {str(1000 + number): ["graded"] for number in range(3)}, said
    assert {entry["total"] for entry in course.entries().values()} == {4}
    assert len(examined(cluster)) > 3


def test_a_node_at_work_on_another_run_joins_when_that_is_over(
    course: Course, cluster: ForeignCluster, tiny_course: Path, tmp_path: Path
) -> None:
    other = Course(tiny_course, tmp_path / "other", cluster)
    course.hand_in(s1000=f"passes asks={tmp_path / 'now'}")
    other.hand_in(s2000="passes")
    cluster.start("lab1")
    first = course.start()
    second = None
    try:
        said_until(first, "node lab1: ready")
        second = other.start(_BUSY_SECONDS=0.3)
        said_until(second, "node lab1: is at work on another run, and joins when that is over.")
        (tmp_path / "now").touch()
        said, _ = first.communicate(timeout=200)
        said_until(second, "2000: done")
        second.communicate(timeout=200)
    finally:
        for run in filter(None, (first, second)):
            run.kill()
    assert course.statuses() == {"1000": ["graded"]}, said
    assert other.statuses() == {"2000": ["graded"]}


def examined(cluster: ForeignCluster) -> list[tuple[str, int]]:
    """The student and the process of each examination that was begun."""
    log = cluster.folder / "examined"
    lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
    return [(student, int(pid)) for student, pid in map(str.split, lines)]


def folders(cluster: ForeignCluster) -> list[Path]:
    """What nodes have of runs."""
    return list(cluster.temporary.glob("grader-node-*"))
