"""Children begin, end and are cleaned up after, whatever ends them."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from grader.domain.errors import EngineError, SandboxError
from grader.sandbox import Exit, Host, ProcessLimits

LIMITS = ProcessLimits(memory_mb=200)


def test_a_child_leaves_when_its_client_has_no_more_requests(host, answer):
    with host.spawn(LIMITS) as running:
        assert answer(running, "value = 'hello'")["value"] == "hello"
        running.writer.close()
        assert running.wait(5) == Exit(code=0)
        assert running.reader.read(1) == b""


@pytest.mark.parametrize(
    ("code", "ended"),
    [
        ("raise SystemExit(3)", Exit(3)),
        ("import os; os._exit(7)", Exit(7)),
        ("raise KeyboardInterrupt", Exit(1)),
        ("import ctypes; ctypes.string_at(0)", Exit(None, signal.SIGSEGV)),
        ("import os; os.abort()", Exit(None, signal.SIGSEGV)),
    ],
)
def test_how_it_ends_is_told(host, answer, code, ended):
    with host.spawn(LIMITS) as running:
        assert answer(running, code) is None
        assert running.wait(5) == ended


def test_a_traceback_is_in_its_output(host, answer):
    with host.spawn(LIMITS) as running:
        answer(running, "raise KeyboardInterrupt('by hand')")
        running.wait(5)
        assert "KeyboardInterrupt: by hand" in running.stderr_tail()


def test_kill_ends_one_that_hangs(host):
    with host.spawn(LIMITS) as running:
        running.writer.write(b'{"code": "while True: pass"}\n')
        running.writer.flush()
        assert running.wait(0.1) is None
        running.kill()
        assert running.wait(5) == Exit(None, signal.SIGKILL)
        running.kill()
        assert running.wait() == Exit(None, signal.SIGKILL)


def test_kill_ends_one_that_stopped_itself(host, answer):
    with host.spawn(LIMITS) as running:
        running.writer.write(b'{"code": "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)"}\n')
        running.writer.flush()
        running.kill()
        assert running.wait(5) == Exit(None, signal.SIGKILL)


def test_a_closed_connection_ends_it(host):
    running = host.spawn(LIMITS)
    running.close()
    assert running.wait() == Exit(None, signal.SIGKILL)


def test_children_do_not_see_each_other_and_start_clean(host, answer):
    with host.spawn(LIMITS) as first, host.spawn(LIMITS) as second:
        assert answer(first, "open('left', 'w').close(); import os; value = os.listdir()")["value"] == [
            "left"
        ]
        assert answer(first, "open('/dev/shm/left', 'w').close(); import json; json.left = 1; value = 1")[
            "value"
        ]
        assert answer(second, "import os; value = os.listdir() + os.listdir('/dev/shm')")["value"] == []
        assert answer(second, "import json; value = hasattr(json, 'left')")["value"] is False


def test_another_client_connects_by_address(host, answer):
    with Host.connect(host.address) as other, other.spawn(LIMITS) as running:
        assert answer(running, "value = 1")["value"] == 1
    with host.spawn(LIMITS) as running:
        assert answer(running, "value = 2")["value"] == 2


def test_the_address_is_private(host):
    assert Path(host.address).parent.stat().st_mode & 0o077 == 0


def test_a_request_that_is_no_request_hurts_nobody(host, answer):
    for sent in (b"", b"nonsense", b"[]", b"{}", b'{"limits": {"memory_mb": -1}, "gpu": false}'):
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
            client.connect(host.address)
            if sent:
                client.send(sent)
    with host.spawn(LIMITS) as running:
        assert answer(running, "value = 1")["value"] == 1


@pytest.mark.slow
def test_nothing_is_left_behind(start_host, host, answer, traces, left_behind):
    before = traces()
    with start_host() as own:
        for code in (
            "open('a', 'w').write('x' * 1000)",
            "open('/dev/shm/a', 'w').write('x' * 1000)",
            "import threading; threading.Thread(target=threading.Event().wait, daemon=True).start()",
            "value = bytearray(b'x') * 10**9",
            "import os; os._exit(0)",
        ):
            with own.spawn(LIMITS) as running:
                answer(running, code)
            # the spare's, which waits for the next request
            names = {Path(trace).name for trace in traces() if f"grader-{own._pid}-" in trace}
            assert len(names) <= 1
        folder = Path(own.address).parent
        abandoned = own.spawn(LIMITS)
    assert not folder.exists()
    with pytest.raises(SandboxError, match="host process ended"):
        abandoned.wait(5)
    abandoned.close()
    assert not left_behind(before)


STARTER = """
import os, sys, time
from grader.sandbox import Host, ProcessLimits
host = Host.start("sandbox_child", [{mark!r}], env={{"PYTHONPATH": {path!r}}})
child = host.spawn(ProcessLimits())
print(host.address, flush=True)
time.sleep(60)
"""


def test_a_host_dies_with_its_starter(host, mark, traces, left_behind):
    before = traces()
    code = STARTER.format(mark=mark, path=str(Path(__file__).parent))
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as starter:
        folder = Path(starter.stdout.readline().strip()).parent
        assert any(trace.startswith("process") for trace in traces() - before)
        starter.send_signal(signal.SIGKILL)
        starter.wait()
    try:
        assert not left_behind(before)
        assert not folder.exists()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def test_children_die_with_a_killed_host(start_host, host, answer, traces, left_behind):
    before = traces()
    with start_host() as own:
        running = own.spawn(LIMITS)
        assert answer(running, "value = 1")["value"] == 1
        own._process.kill()
        with pytest.raises(SandboxError, match="host process ended"):
            running.wait(5)
        with pytest.raises(SandboxError, match="does not answer"):
            own.spawn(LIMITS)
        running.close()
    assert not left_behind(before)


def test_a_disk_without_room_is_told(start_host, monkeypatch):
    """What a host says of it would lie on that disk."""
    full = shutil._ntuple_diskusage(10**9, 10**9, 0)
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: full)
    with pytest.raises(EngineError, match="no room is left for temporary files"):
        start_host(env={"NEVER_READY": "1"})


def test_a_folder_for_temporary_files_with_too_long_a_path_is_told(start_host, tmp_path, monkeypatch):
    folder = tmp_path / ("deep" * 25)
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    with pytest.raises(EngineError, match=r"too long a path for Linux's sockets.*TMPDIR=/tmp"):
        start_host()
    assert not list(folder.iterdir())


def test_many_at_once(host, answer):
    running = [host.spawn(LIMITS) for _ in range(12)]
    try:
        assert [answer(one, f"value = {index}")["value"] for index, one in enumerate(running)] == list(
            range(12)
        )
    finally:
        for one in running:
            one.close()


STARTED = "import time; value = int(open('/proc/self/stat').read().split()[21])"


def test_a_child_is_ready_before_it_is_asked_for(start_host, host, answer):
    with start_host() as own:
        with own.spawn(LIMITS) as first:
            answer(first, "value = 1")
        time.sleep(0.5)
        asked = time.clock_gettime(time.CLOCK_BOOTTIME) * os.sysconf("SC_CLK_TCK")
        with own.spawn(LIMITS) as second:
            assert answer(second, STARTED)["value"] < asked
            assert second.attestation.level == first.attestation.level
            assert second.attestation.layers.keys() == first.attestation.layers.keys()
        with own.spawn(ProcessLimits(memory_mb=300)) as other:
            assert answer(other, STARTED)["value"] >= int(asked)


def test_few_spares_are_kept(start_host, host, answer, processes_of):
    with start_host() as own:
        for size in (200, 210, 220, 230, 200):
            with own.spawn(ProcessLimits(memory_mb=size)) as running:
                answer(running, "value = 1")
        deadline = time.monotonic() + 10
        while len(processes_of(own)) > 2 and time.monotonic() < deadline:
            time.sleep(0.02)
        assert len(processes_of(own)) == 2


def test_a_spare_that_died_is_not_handed_over(start_host, host, answer, processes_of):
    with start_host() as own:
        for _ in range(3):
            with own.spawn(LIMITS) as running:
                assert answer(running, "value = 1")["value"] == 1
            spares = processes_of(own)
            for pid in spares:
                os.kill(pid, signal.SIGKILL)
            while set(spares) & set(processes_of(own)):
                time.sleep(0.02)


def test_descriptors_do_not_pile_up(host, answer):
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(5):
        with host.spawn(LIMITS) as running:
            answer(running, "value = 1")
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_spare_is_no_trace_and_a_child_at_work_is_one(start_host, host, answer, traces, processes_of):
    with start_host() as own:

        def listed():
            return {pid for pid in processes_of(own) if f"process {pid}" in traces(own)}

        with own.spawn(LIMITS) as running:
            answer(running, "value = 1")
            deadline = time.monotonic() + 10
            while len(processes_of(own)) < 2 or len(listed()) != 1:
                assert time.monotonic() < deadline
                time.sleep(0.02)
            assert listed() < set(processes_of(own))
