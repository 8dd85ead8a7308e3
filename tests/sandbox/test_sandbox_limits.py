"""What a child may use: each limit stops it, and it alone."""

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from grader.domain.errors import EngineError
from grader.sandbox import ProcessLimits, host_loop, process_limits, survey
from grader.sandbox.forked_child import is_dying
from grader.sandbox.lockdown import Layer
from grader.sandbox.process_limits import ended_for_memory, memory_controller

SMALL = ProcessLimits(memory_mb=100, cpu_seconds=1, file_mb=2, processes=6, open_files=30, scratch_mb=4)
# a thread reserves far more address space than it uses
ROOMY = replace(SMALL, memory_mb=1500)


@pytest.fixture
def small(host):
    with host.spawn(SMALL) as running:
        yield running


def test_memory(host, small, answer):
    """A cgroup kills; a bound on address space answers MemoryError. The host and others go on."""
    reply = answer(small, "value = len(bytearray(b'x') * 300_000_000)")
    if Layer.CGROUP in survey().layers:
        assert reply is None
        assert small.wait(5).limit == "memory"
    else:
        assert reply["error"] == "MemoryError"
    with host.spawn(SMALL) as other:
        assert answer(other, "value = len(bytearray(b'x') * 20_000_000)")["value"] == 20_000_000


def test_shared_memory_counts(small, answer):
    code = """
import mmap
held = []
for _ in range(40):
    held.append(mmap.mmap(-1, 10_000_000))
    held[-1].write(bytes(10_000_000))
"""
    reply = answer(small, code)
    assert reply is None or reply["error"] in ("OSError", "MemoryError")


@pytest.mark.parametrize(("megabytes", "near"), [(20, False), (75, True)])
def test_what_it_held_at_most_is_measured(host, answer, megabytes, near):
    """By the kernel, also what was given back; a limit that refuses memory says whether it was near."""
    with host.spawn(SMALL) as child:
        answer(child, f"held = bytearray(b'x') * {megabytes}_000_000\ndel held\nvalue = 1")
        child.kill()
        end = child.ending()
    assert end.limit is None
    assert abs(end.memory_mb - megabytes) < 10
    assert end.near_memory == (near and Layer.CGROUP not in survey().layers)


def test_what_it_computed_is_measured(host, answer):
    with host.spawn(SMALL) as child:
        answer(child, "import time\nwhile time.process_time() < 0.4: pass\nvalue = 1")
        child.kill()
        assert 0.3 < child.ending().cpu_seconds < 1


def test_processor_time(small, answer):
    code = """
import signal
signal.signal(signal.SIGXCPU, lambda *_: None)
while True:
    pass
"""
    assert answer(small, code) is None
    ended = small.wait(5)
    assert (ended.limit, ended.signal) == ("cpu", 9)


def test_file_size(small, answer):
    reply = answer(small, "open('big', 'wb').write(bytes(3_000_000))")
    assert (reply["error"], reply["errno"]) == ("OSError", 27)


def test_disk(small, answer):
    """The folder and shared memory share one bound."""
    code = (
        "open('a', 'wb').write(bytes(1_900_000)); open('/dev/shm/b', 'wb').write(bytes(1_900_000)); value = 1"
    )
    assert answer(small, code)["value"] == 1
    reply = answer(small, "open('c', 'wb').write(bytes(1_900_000))")
    assert (reply["error"], reply["errno"]) == ("OSError", 28)


def test_number_of_files(small, answer):
    reply = answer(small, "for number in range(10_000): open(f'n{number}', 'w').close()")
    assert (reply["error"], reply["errno"]) == ("OSError", 28)


def test_threads(host, answer):
    code = """
import threading
stop = threading.Event()
try:
    for value in range(1, 100):
        threading.Thread(target=stop.wait, daemon=True).start()
except RuntimeError:
    pass
stop.set()
"""
    with host.spawn(ROOMY) as running:
        assert 2 <= answer(running, code)["value"] <= 6


def test_threads_of_one_child_are_not_counted_for_another(host, answer):
    code = """
import threading
for _ in range(4):
    threading.Thread(target=threading.Event().wait, daemon=True).start()
"""
    with host.spawn(ROOMY) as first, host.spawn(ROOMY) as second, host.spawn(ROOMY) as third:
        for running in (first, second, third):
            assert "error" not in answer(running, code)


def test_descriptors(small, answer):
    reply = answer(small, "held = [open('/dev/null') for _ in range(100)]")
    assert (reply["error"], reply["errno"]) == ("OSError", 24)


def test_output_is_cut_and_does_not_block(host, answer):
    with host.spawn(ProcessLimits(output_kb=20)) as running:
        code = """
import sys
print("first")
for _ in range(300):
    print("x" * 10_000)
print("last", flush=True)
print("to errors too", file=sys.stderr, flush=True)
value = 1
"""
        assert answer(running, code)["value"] == 1
        running.kill()
        running.wait(5)
        tail = running.stderr_tail()
        assert running.output_cut
        assert len(tail) <= 20_000
        assert "first" not in tail
        assert tail.endswith("last\nto errors too\n")


@pytest.mark.parametrize(
    "wrong", [{"memory_mb": -1}, {"memory_mb": 1.5}, {"cpu_seconds": True}, {"color": 1}]
)
def test_nonsense_is_refused(wrong):
    with pytest.raises(EngineError, match="positive whole number"):
        ProcessLimits.from_json(wrong)


ALLOCATES = """
import json
from grader.domain.errors import SandboxError
from grader.sandbox import Host, ProcessLimits
environment = {"PYTHONPATH": %r}
with Host.start("sandbox_child", env=environment, timeout=60) as host:
    with host.spawn(ProcessLimits(memory_mb=3000)) as child:
        code = {"code": "value = len(bytearray(b'x') * 500_000_000)"}
        child.writer.write(json.dumps(code).encode() + b"\\n")
        child.writer.flush()
        print(child.reader.read(1000))
        try:
            print(child.wait(10))
        except SandboxError as error:
            print(error)
"""


def test_memory_that_others_use_up_is_not_its_own(tmp_path):
    """As in a container or a job of Slurm, whose memory is less than that of all its processes together."""
    controller = memory_controller()
    if controller is None or controller.version != 1:
        pytest.skip("cgroups of version 1 can be nested around a running process")
    around = controller.parent / f"around-{os.getpid()}"
    around.mkdir()
    try:
        (around / "memory.limit_in_bytes").write_text("200000000")
        program = f"import os; open({str(around / 'cgroup.procs')!r}, 'w').write(str(os.getpid()))\n"
        code = program + ALLOCATES % str(Path(__file__).parent)
        told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    finally:
        around.rmdir()
    assert told.stdout.splitlines()[0] == "b''", told.stderr
    assert "The machine ran out of memory, and ended a process for it that had not used up its" in told.stdout


@pytest.mark.parametrize(
    ("code", "killed", "ended_before", "starved"),
    [(-9, False, 4, True), (-9, False, 5, False), (-9, True, 4, False), (-11, False, 4, False)],
    ids=["for memory", "by itself", "by us", "by another signal"],
)
def test_without_a_cgroup_the_machine_says_whether_it_ended_one(
    monkeypatch, code, killed, ended_before, starved
):
    monkeypatch.setattr(host_loop, "ended_for_memory", lambda: 5)
    job = host_loop._Job(SMALL, False, killed=killed, ended_before=ended_before)
    assert host_loop._was_starved(job, code) is starved


def test_whoever_sees_a_process_die_has_not_ended_it():
    alive = subprocess.Popen(["sleep", "20"])
    pidfd = os.pidfd_open(alive.pid)
    try:
        assert not is_dying(pidfd)
        alive.terminate()
        os.waitid(os.P_PIDFD, pidfd, os.WEXITED | os.WNOWAIT)
        assert is_dying(pidfd), "it has ended, and was not waited for yet"
        alive.wait()
        assert is_dying(pidfd)
    finally:
        os.close(pidfd)


def test_whoever_used_up_a_cgroup_of_their_own_says_nothing_of_the_machine():
    controller = memory_controller()
    if controller is None:
        pytest.skip("no cgroups can be made here")
    machine = Path("/proc/vmstat")
    counted, before = process_limits._counted(machine)["oom_kill"], ended_for_memory()
    cgroup = controller.cgroup(f"{os.getpid()}-greedy", 100)
    try:
        procs = str(cgroup.path / "cgroup.procs")
        code = f"open({procs!r}, 'w').write('0'); held = bytearray(b'x') * 300_000_000"
        done = subprocess.run([sys.executable, "-c", code], check=False)
        assert done.returncode == -signal.SIGKILL and cgroup.was_killed()
    finally:
        cgroup.remove()
    assert process_limits._counted(machine)["oom_kill"] > counted
    assert ended_for_memory() == before


def test_a_container_may_hide_how_many_were_ended_for_memory(monkeypatch):
    def hidden(*_, **__):
        raise PermissionError

    assert process_limits.ended_for_memory() >= 0
    monkeypatch.setattr(Path, "read_text", hidden)
    assert process_limits.ended_for_memory() == 0
