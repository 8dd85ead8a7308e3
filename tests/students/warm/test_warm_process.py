"""Real warm processes: what they find, and how they end."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from grader.students.homework import local_assignment
from grader.students.warm.asking import stop
from grader.students.warm.question import warm_address
from grader.students.warm.starting import FORKS, ONCE, start

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="processes are looked at in /proc"),
]
PATIENCE = 300.0
# what a check does not come back from by itself for minutes
ENDLESS = "class PreNorm(nn.Module):\n    def __init__(self, *a):\n        while True: pass\n"


@pytest.fixture
def homework(solved):
    """The solution with few epochs, which a trial finishes on any machine: how far it comes is printed."""
    few = solved.replace("N_EPOCHS = 30", "N_EPOCHS = 2")
    assert few != solved
    return few


@pytest.fixture
def desk(course_root, tmp_path, homework, monkeypatch, runtime_folder):
    """A student's folder with the solution, which is the working folder too."""
    folder = tmp_path / "vit"
    shutil.copytree(course_root / "template" / "vit_defects", folder)
    (folder / "homework.py").write_text(homework, encoding="utf-8")
    monkeypatch.chdir(folder)
    monkeypatch.delenv("GRADER_COURSE", raising=False)
    return folder


@pytest.fixture(params=[FORKS, ONCE])
def way(request):
    return request.param


def begin(desk: Path, way: str, idle: float = 300.0) -> int:
    """Start one, and wait until it answers; its pid."""
    address, local = warm_address(desk), local_assignment([desk])
    start(address, local.assignment.folder, local.datasets, os.environ, idle=idle, way=way)
    return ready(desk)


def ready(desk: Path) -> int:
    """The pid of the warm process, once it has loaded all: it hears what is not a question, and closes."""
    address = warm_address(desk)
    pid = int(wait_until(lambda: address.pid()))
    connection, _ = wait_until(lambda: connected(address))
    with connection:
        connection.sendall(b"\n")
        assert connection.recv(1) == b""
    return pid


def connected(address):
    try:
        return address.connected(PATIENCE)
    except OSError:  # it has written its number, and is about to listen
        return None


def wait_until(true, seconds=PATIENCE):
    until = time.monotonic() + seconds
    while not (found := true()):
        assert time.monotonic() < until, "it takes too long"
        time.sleep(0.02)
    return found


def check(*options, **surroundings):
    """`grader check` in a new process; what it printed, its exit code, and whether it loaded PyTorch."""
    script = (
        "import sys; from grader.cli import cli\n"
        "try: cli(sys.argv[1:], prog_name='grader')\n"
        "finally: print('torch' in sys.modules, file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, "check", *options],
        capture_output=True,
        text=True,
        check=False,
        encoding="utf-8",
        env={**os.environ, **surroundings},
        timeout=PATIENCE,
    )
    *said, loaded = done.stderr.splitlines()
    return done.stdout + "\n".join(said), done.returncode, loaded == "True"


def is_alive(pid: int) -> bool:
    """Whether a process is there, and not only not waited for."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def family(pid: int) -> set[int]:
    """The warm process, if it is there, and those of its checks."""
    mark, found = str(warm_address(Path.cwd()).folder).encode(), set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and is_alive(int(entry.name)):
            try:
                if int(entry.name) == pid or mark in (entry / "cmdline").read_bytes().split(b"\0"):
                    found.add(int(entry.name))
            except OSError:
                continue
    return found


def test_it_finds_what_a_new_process_finds(desk, homework):
    texts = {
        "right": homework,
        "wrong": homework.replace("return self.fn(self.norm(x), **kwargs)", "return None"),
        "no Python": "class (",
        "sets what others share": "import os, torch\ntorch.set_default_dtype(torch.float64)\n" + homework,
        "dies": homework.replace("class PreNorm(nn.Module):", "class PreNorm(nn.Module):\n    os.abort()"),
    }
    new = {}
    for name, text in texts.items():
        (desk / "homework.py").write_text(text, encoding="utf-8")
        new[name] = check("--json", "--no-warm")
    assert [new[name][1] for name in ("right", "wrong", "no Python", "dies")] == [0, 1, 2, 1]
    assert new["right"][2], "without a warm process PyTorch is loaded"
    begin(desk, FORKS)
    for name in (*texts, "right"):
        (desk / "homework.py").write_text(texts[name], encoding="utf-8")
        assert check("--json") == (*new[name][:2], False), name


def test_one_that_makes_one_check_finds_the_same_and_starts_the_next(desk):
    expected = check("--json", "--no-warm")[:2]
    first = begin(desk, ONCE)
    assert check("--json") == (*expected, False)
    address = warm_address(desk)
    second = wait_until(lambda: (pid := address.pid()) != first and pid)
    assert check("--json") == (*expected, False)
    wait_until(lambda: not is_alive(second))


def test_a_check_starts_one_that_the_next_asks(desk):
    said, code, loaded = check()
    assert code == 0 and loaded
    pid = ready(desk)
    assert check() == (said, 0, False)
    done = subprocess.run([sys.executable, "-m", "grader", "check", "--stop"], capture_output=True, text=True)
    assert done.stdout == "One warm process was ended.\n"
    wait_until(lambda: not family(pid))
    assert {path.suffix for path in warm_address(desk).folder.iterdir()} == {".lock"}


def test_two_checks_at_once(desk):
    begin(desk, FORKS)
    check()
    command = [sys.executable, "-m", "grader", "check", "--json"]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = [json.loads(each.communicate(timeout=PATIENCE)[0]) for each in both]
    assert said[0] == said[1] and said[0]["passed"]


def test_ctrl_c_ends_the_check_and_its_worker(desk, way, monkeypatch):
    monkeypatch.setenv("PYTHONUNBUFFERED", "1")
    (desk / "homework.py").write_text(f"import torch\nfrom torch import nn\n{ENDLESS}", encoding="utf-8")
    pid = begin(desk, way)
    at_rest = len(family(pid)) + 1  # a fork in readiness is kept from the first check on
    command = [sys.executable, "-m", "grader", "check"]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # tests that run in the background may ignore it, and a child would inherit that
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as running:
        assert running.stdout is not None
        wait_until(lambda: running.stdout.readline() == "The file\n")
        running.send_signal(signal.SIGINT)
        assert "Stopped." in running.communicate(timeout=PATIENCE)[1] and running.returncode == 130
    if way == FORKS:
        wait_until(lambda: len(family(pid)) <= at_rest)
        assert is_alive(pid)
    else:
        wait_until(lambda: not is_alive(pid))


def test_a_killed_one_is_replaced_without_a_word(desk):
    pid = begin(desk, FORKS)
    expected = check()
    assert not expected[2]
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: len(family(pid) - {pid}) == 0)
    assert check() == (*expected[:2], True)
    assert ready(desk) != pid
    assert check() == expected


def test_a_worker_host_that_is_gone_costs_nothing(desk):
    pid = begin(desk, FORKS)
    expected = check()
    for other in family(pid) - {pid}:
        os.kill(other, signal.SIGKILL)
    said, code, loaded = check()
    assert (said, code) == expected[:2] and loaded
    wait_until(lambda: not is_alive(pid))


def test_another_assignment_or_environment_ends_it(desk, monkeypatch):
    for change in (
        lambda: (desk / "test_public_vit.py").write_text("\n" + (desk / "test_public_vit.py").read_text()),
        lambda: monkeypatch.setenv("OMP_NUM_THREADS", "2"),
    ):
        pid = begin(desk, FORKS)
        assert not check()[2]
        change()
        assert check()[2], "it must not answer"
        wait_until(lambda pid=pid: not is_alive(pid))
        stop()


def test_it_ends_when_nobody_asks(desk, way):
    pid = begin(desk, way, idle=0.5)
    wait_until(lambda: not family(pid))


def test_checks_that_cannot_be_collected_leave_none(desk):
    (desk / "conftest.py").write_text("raise RuntimeError\n", encoding="utf-8")
    said, code, _ = check()
    assert code == 2 and "could not be collected" in said
    assert warm_address(desk).pid() is None


def test_it_is_stopped_while_it_loads(desk):
    local = local_assignment([desk])
    address = warm_address(desk)
    start(address, local.assignment.folder, local.datasets, os.environ)
    pid = wait_until(address.pid)
    assert stop() == 1
    wait_until(lambda: not family(pid))
