"""A class with odd submissions gets on a cluster what it gets on one machine.

The nodes are reached by SSH and run as users of their own, who can read neither the coordinator's folders nor
the files of these tests: all that they have came to them.
"""

import contextlib
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest

from grader.course.reference_solution import solved_source
from tests.attacks.test_attacked_class import ATTACKS, HOMEWORK
from tests.loopback_servers import living, wait_until
from tests.node_users import python_of
from tests.real_sshd import SshNodes

pytestmark = pytest.mark.service
COURSES = Path(__file__).parents[1] / "courses"
SIZE = 40
# enough for honest homework while nodes share two processors
LIMITS = "\n[limits]\nload_seconds = 8\ncall_seconds = 4\nmemory_mb = 600\n"
VARIES = ("sandbox", "received_hint", "graded_at", "seconds", "projected_seconds")
RIGHT = HOMEWORK.format(load="pass", call="pass", factor=2)


def class_of_forty(folder: Path) -> Path:
    """Right and wrong homework, and twenty odd submissions."""
    for number in range(SIZE - len(ATTACKS) - 10):
        hand_in(folder, 1000 + number, HOMEWORK.format(load="pass", call="pass", factor=2 + number % 3 // 2))
    for number, (load, call) in enumerate(ATTACKS.values()):
        hand_in(folder, 2000 + number, HOMEWORK.format(load=load, call=call, factor=2))
    hand_in(folder, 3000, "class Doubler(:\n")
    hand_in(folder, 3001, "")
    hand_in(folder, 3002, RIGHT.replace("class Doubler", "class Other"))
    hand_in(folder, 3003, HOMEWORK.format(load="raise SystemExit", call="pass", factor=2))
    hand_in(folder, 3004, HOMEWORK.format(load="os.kill(os.getpid(), 9)", call="pass", factor=2))
    hand_in(folder, 3005, HOMEWORK.format(load="os.kill(os.getppid(), 9)", call="pass", factor=2))
    (folder / "3006").mkdir()
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(RIGHT)])
    nbformat.write(notebook, folder / "3006" / "3006_homework.ipynb")
    (folder / "3007").mkdir()
    (folder / "3007" / "3007_homework.py").symlink_to("/etc/passwd")
    hand_in(folder, 3008, f"{RIGHT}#{'x' * 3_000_000}\n")
    (folder / "3009").mkdir()
    (folder / "3009" / "3009_notes.txt").write_text("no code", encoding="utf-8")
    return folder


def hand_in(folder: Path, student: int, text: str) -> None:
    (folder / str(student)).mkdir(parents=True)
    (folder / str(student) / f"{student}_homework.py").write_text(text, encoding="utf-8")


@pytest.fixture
def hosts(ssh_nodes: SshNodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """What `--cluster` names: three machines, each of which examines one submission at a time."""
    lines = [f"{node.name} jobs=1 python={python_of(node.user)}\n" for node in ssh_nodes.nodes[:3]]
    (tmp_path / "hosts.txt").write_text("".join(lines), encoding="utf-8")
    monkeypatch.setenv("GRADER_SSH", f"ssh -F {ssh_nodes.config}")
    return f"ssh:{tmp_path / 'hosts.txt'}"


def started(*words: Any) -> "subprocess.Popen[str]":
    """The command, at work."""
    return subprocess.Popen(
        [sys.executable, "-m", "grader", "grade", *map(str, words)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def entries(out: Path) -> dict[str, Any]:
    """What results.json says of every student, but for times, the node, and what was proved of it.

    How a machine bounds memory is part of that: a process that takes too much meets an error or is
    killed, and so the sentences differ.
    """
    document = lasting_part(json.loads((out / "results.json").read_text(encoding="utf-8")))
    for entry in document["submissions"]:
        if any("MB of memory" in finding["message"] for finding in entry["findings"]):
            told = entry["findings"]
            entry["findings"] = [(finding["check"], finding["status"], finding["blame"]) for finding in told]
    return {entry["student_id"]: entry for entry in document["submissions"]}


def lasting_part(part: Any) -> Any:
    """The same without times, and without what says where it was found."""
    if isinstance(part, dict):
        return {key: lasting_part(value) for key, value in part.items() if key not in VARIES}
    return list(map(lasting_part, part)) if isinstance(part, list) else part


def compared(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """What differs, in words."""
    return [
        f"{student} {key}: {one[student].get(key)!r} / {other.get(student, {}).get(key)!r}"
        for student in one
        for key in one[student]
        if one[student].get(key) != other.get(student, {}).get(key)
    ]


def left_of(ssh_nodes: SshNodes) -> list[str]:
    """The processes and the folders of the machines' users."""
    users = {node.user.uid for node in ssh_nodes.nodes}
    processes = living(lambda process: process.stat().st_uid in users)
    folders = [path for path in Path("/tmp").glob("grader-*") if path.stat().st_uid in users]
    return [*processes.values(), *map(str, folders)]


def test_a_class_of_forty_gets_the_same_from_nodes_of_other_users(
    tiny_course: Path, tmp_path: Path, ssh_nodes: SshNodes, hosts: str
) -> None:
    """Of whom nothing is left there."""
    path = tiny_course / "reference" / "tiny" / "assignment.toml"
    path.write_text(path.read_text(encoding="utf-8") + LIMITS, encoding="utf-8")
    class_of_forty(tmp_path / "class")
    words = (tmp_path / "class", "--course", tiny_course, "--assignment", "tiny", "--no-train")
    run = started(*words, "--out", tmp_path / "cluster", "--cluster", hosts)
    said, _ = run.communicate(timeout=600)
    assert run.returncode in (0, 3), said
    print(said[-3000:])
    alone = started(*words, "--out", tmp_path / "one", "--jobs", 2)
    said, _ = alone.communicate(timeout=600)
    assert alone.returncode in (0, 3), said
    found, expected = entries(tmp_path / "cluster"), entries(tmp_path / "one")
    assert len(expected) == SIZE
    differing = compared(expected, found)
    assert not differing, "\n".join(differing)
    with contextlib.suppress(AssertionError):
        wait_until(lambda: not left_of(ssh_nodes), "nothing is left on the machines", 30)
    assert left_of(ssh_nodes) == []


def test_trainings_end_the_same_on_nodes(tmp_path: Path, hosts: str) -> None:
    """Into one folder, as each gradebook hides other images: on the cluster, and then on this machine."""
    course = shutil.copytree(COURSES / "comparison", tmp_path / "comparison")
    path = course / "reference" / "two_networks" / "solution.py"
    solved = solved_source(path.read_text(encoding="utf-8"), path.name)
    folder, out = tmp_path / "class", tmp_path / "out"
    shutil.copytree(COURSES / "uploads" / "two_networks", folder)
    (folder / "400101206").mkdir()
    broken = solved.replace("train_epoch(convnet, optimizer", "train_epoch(convnet, optimiser")
    (folder / "400101206" / "400101206_Compared.py").write_text(broken, encoding="utf-8")
    words = (folder, "--course", course, "--assignment", "two_networks", "--data", "synthetic", "--out", out)
    run = started(*words, "--cluster", hosts)
    said, _ = run.communicate(timeout=600)
    assert run.returncode == 0, said
    found = entries(out)
    alone = started(*words, "--force", "--jobs", 2)
    said, _ = alone.communicate(timeout=600)
    assert alone.returncode == 0, said
    expected = entries(out)
    assert len(expected) == 2 and not (differing := compared(expected, found)), differing
    assert any(entry["measurements"] for entry in expected.values())
