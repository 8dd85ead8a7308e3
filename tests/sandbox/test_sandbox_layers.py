"""What a locked-down child tries and must not achieve, and what it must still be able to do."""

import os
import socket
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]

# what is tried, and the errors that may answer
REFUSED = {
    "read the project": (f"open({str(PROJECT / 'pyproject.toml')!r}).read()", {"FileNotFoundError"}),
    "read this test": (f"open({str(Path(__file__))!r}).read()", {"FileNotFoundError"}),
    "read the engine": ("import importlib; importlib.import_module('grader.cli')", {"ModuleNotFoundError"}),
    "read accounts": ("open('/etc/shadow').read()", {"FileNotFoundError"}),
    "list the root": ("import os; os.listdir('/')", {"PermissionError"}),
    "read past Landlock": ("open('/landlock-canary').read()", {"PermissionError"}),
    "read another's memory": ("open('/proc/2/mem').read()", {"FileNotFoundError"}),
    "see the host": ("import os; os.stat(f'/proc/{os.getppid()}')", {"FileNotFoundError"}),
    "write to the library": ("import os; open(os.__file__ + 'x', 'w')", {"PermissionError", "OSError"}),
    "write to proc": ("open('/proc/self/oom_score_adj', 'w').write('0')", {"OSError", "PermissionError"}),
    "overwrite its memory": ("open('/proc/self/mem', 'r+b')", {"FileNotFoundError"}),
    "list its descriptors": ("import os; os.listdir('/proc/self/fd')", {"FileNotFoundError"}),
    "read the load": ("open('/proc/loadavg').read()", {"FileNotFoundError"}),
    "count the machine's files": ("open('/proc/sys/fs/file-nr').read()", {"FileNotFoundError"}),
    "see who shares a page": ("open('/proc/self/smaps').read()", {"FileNotFoundError"}),
    "see how busy a processor is": (
        "open('/sys/devices/system/cpu/cpu0/cpuidle/state0/usage').read()",
        {"FileNotFoundError"},
    ),
    "date a device": ("import os; os.utime('/dev/null')", {"OSError"}),
    "lease a file": ("import fcntl, os; fcntl.fcntl(open(os.__file__), 1024, 0)", {"PermissionError"}),
    "watch a folder": (
        "import fcntl, os; fcntl.fcntl(os.open('/usr/lib', 0), fcntl.F_NOTIFY, fcntl.DN_ACCESS)",
        {"PermissionError"},
    ),
    "hint at a file": (
        "import fcntl, os; fcntl.fcntl(open(os.__file__), 1035, bytes(8))",
        {"PermissionError"},
    ),
    "ask for a lock": (
        "import fcntl, os; fcntl.fcntl(open(os.__file__), fcntl.F_GETLK, bytes(32))",
        {"PermissionError"},
    ),
    "ask a device": (
        "import fcntl; fcntl.ioctl(open('/dev/urandom'), 0x80045200, bytes(4))",
        {"PermissionError"},
    ),
    "open a disk": ("open('/dev/vda')", {"FileNotFoundError"}),
    "open kvm": ("open('/dev/kvm')", {"FileNotFoundError"}),
    "open fuse": ("open('/dev/fuse')", {"FileNotFoundError"}),
    "make a socket": ("import socket; socket.socket()", {"PermissionError"}),
    "make a pair": ("import socket; socket.socketpair()", {"PermissionError"}),
    "fork": ("import os; os.fork()", {"PermissionError"}),
    "start a program": ("import os; os.execv('/bin/true', ['true'])", {"PermissionError"}),
    "start a shell": ("import subprocess; subprocess.run('true', shell=True)", {"PermissionError"}),
    "kill everything": ("import os; os.kill(-1, 9)", {"PermissionError"}),
    "kill the host": ("import os; os.kill(os.getppid(), 9)", {"PermissionError"}),
    "make a pipe past Python's": ("import posix; posix.pipe()", {"PermissionError"}),
    "hide memory": ("import os; os.memfd_create('x')", {"PermissionError"}),
    "become root": ("import os; os.setuid(0)", {"PermissionError"}),
    "change the root": ("import os; os.chroot('/sandbox')", {"PermissionError"}),
    "raise a limit": (
        "import resource; resource.setrlimit(resource.RLIMIT_CPU, (999_999, 999_999))",
        {"ValueError", "PermissionError"},
    ),
    "link": ("import os; os.symlink('/etc', '/sandbox/etc')", {"PermissionError"}),
    "make a device": ("import os; os.mknod('/sandbox/null', 0o20666, 259)", {"PermissionError"}),
}

SYSTEM_CALLS = {
    "sysinfo": "libc.sysinfo(ctypes.create_string_buffer(200))",
    "futex_waitv": "libc.syscall(449, 0, 0, 0, 0, 0)",
    "madvise of another's pages": "libc.madvise(0, 4096, 21)",
    "a barrier for all processors": "libc.syscall(324, 1, 0, 0)",
    "huge pages": "libc.mmap(0, 1 << 21, 3, 0x40022, -1, 0)",
    "policy of a page": "libc.syscall(239, 0, 0, 0, 0, 3)",
    "unshare": "libc.unshare(0x10000000)",
    "mount": "libc.mount(b'none', b'/sandbox', b'tmpfs', 0, None)",
    "ptrace": "libc.ptrace(0, 0, 0, 0)",
    "process_vm_readv": "libc.process_vm_readv(1, 0, 0, 0, 0, 0)",
    "prctl": "libc.prctl(4, 1, 0, 0, 0)",
    "shmget": "libc.shmget(0, 4096, 0o1600)",
    "keyctl": "libc.syscall(250, 0, 0)",
    "bpf": "libc.syscall(321, 0, 0, 0)",
    "io_uring_setup": "libc.syscall(425, 1, 0)",
    "pidfd_open": "libc.syscall(434, 1, 0)",
    "clone of a process": "libc.syscall(56, 17, 0, 0, 0, 0)",
}


@pytest.mark.parametrize("what", REFUSED)
def test_refused(long_lived, answer, what):
    code, errors = REFUSED[what]
    assert answer(long_lived, code).get("error") in errors


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the numbers are those of x86-64")
@pytest.mark.parametrize("what", SYSTEM_CALLS)
def test_system_call_refused(long_lived, answer, what):
    call = SYSTEM_CALLS[what]
    code = f"import ctypes; libc = ctypes.CDLL(None, use_errno=True); value = [{call}, ctypes.get_errno()]"
    assert answer(long_lived, code)["value"] == [-1, 1]


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="clone3 has this number on x86-64")
def test_clone3_is_unknown_so_that_threads_fall_back(child, answer):
    code = (
        "import ctypes; libc = ctypes.CDLL(None, use_errno=True); libc.syscall(435, 0, 0); "
        "value = ctypes.get_errno()"
    )
    assert answer(child, code)["value"] == 38


def test_only_its_own_process_and_files_are_there(child, answer):
    code = """
import os

def is_open(number):
    try:
        return bool(os.fstat(number))
    except OSError:
        return False

value = {
    "processes": [name for name in os.listdir("/proc") if name.isdigit()],
    "descriptors": [number for number in range(256) if is_open(number)],
    "home": os.listdir(os.path.expanduser("~")),
    "folder": os.getcwd(),
    "environment": sorted(os.environ),
    "proc": sorted(os.listdir("/proc")),
    "self": sorted(os.listdir("/proc/self")),
    "host name": os.uname().nodename,
}
"""
    value = answer(child, code)["value"]
    assert value["processes"] == ["1"]
    # input, output twice, requests, replies
    assert value["descriptors"] == [0, 1, 2, 3, 4]
    assert value["home"] == []
    assert value["folder"] == "/sandbox"
    assert not [name for name in value["environment"] if name.startswith(("PYTHON", "SABOTAGE", "LAYERS"))]
    assert value["proc"] == ["1", "cpuinfo", "meminfo", "self", "stat", "version"]
    assert value["self"] == ["cmdline", "comm", "limits", "maps", "stat", "statm", "status"]
    assert value["host name"] == "grader"


def test_our_package_is_masked_where_it_is_installed(child, answer):
    code = """
import site, os
folders = [f"{folder}/grader" for folder in site.getsitepackages()]
value = [os.listdir(folder) for folder in folders if os.path.isdir(folder)]
"""
    assert all(files == [] for files in answer(child, code)["value"])


def test_abstract_socket_of_the_machine_is_out_of_reach(host, child, answer):
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("\0grader-test-abstract")
        listener.listen()
        code = "import socket; socket.socket(socket.AF_UNIX).connect('\\0grader-test-abstract')"
        assert answer(child, code)["error"] == "PermissionError"


WORKS = {
    "write a file": "open('a', 'w').write('x'); value = open('/sandbox/a').read()",
    "write to tmp": "open('/tmp/b', 'w').write('x'); value = open('/tmp/b').read()",
    "temporary file": "import tempfile; value = tempfile.TemporaryFile().write(b'x') and 'x'",
    "shared memory": "open('/dev/shm/c', 'w').write('x'); value = open('/dev/shm/c').read()",
    "late import": "import wave, xml.dom.minidom, sqlite3.dump; value = 'x'",
    "late package": "import pytest; value = 'x'",
    "threads": """
import threading
found = []
started = [threading.Thread(target=found.append, args=("x",)) for _ in range(3)]
[thread.start() for thread in started]
[thread.join() for thread in started]
value = "".join(sorted(set(found)))
""",
    "randomness": "import os; value = 'x' if os.urandom(4) and open('/dev/urandom', 'rb').read(1) else ''",
    "locks": """
import fcntl, os
with open(os.__file__) as other, open("locked", "w") as own:
    fcntl.flock(other, fcntl.LOCK_EX)
    fcntl.lockf(own, fcntl.LOCK_EX)
    fcntl.lockf(own, fcntl.LOCK_UN)
value = "x"
""",
    "a database": """
import sqlite3
for _ in range(2):
    with sqlite3.connect("kept.db") as base:
        base.execute("create table if not exists t (a)")
        base.execute("insert into t values ('x')")
    base.close()
value = sqlite3.connect("kept.db").execute("select max(a) from t").fetchone()[0]
""",
    "a semaphore that processes may share": """
import ctypes, threading, time
libc = ctypes.CDLL(None)
semaphore = ctypes.create_string_buffer(64)
assert libc.sem_init(semaphore, 1, 0) == 0
threading.Timer(0.1, libc.sem_post, [semaphore]).start()
assert libc.sem_wait(semaphore) == 0
soon = (ctypes.c_long * 2)(int(time.time()) + 1, 0)
started = time.monotonic()
value = "x" if libc.sem_timedwait(semaphore, soon) == -1 and time.monotonic() - started < 5 else ""
""",
    "the end of a thread": """
import ctypes
libc = ctypes.CDLL(None)
thread, begin = ctypes.c_ulong(), ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(lambda _: None)
assert libc.pthread_create(ctypes.byref(thread), None, begin, None) == 0
value = "x" if libc.pthread_join(thread, None) == 0 else ""
""",
    "a pipe": """
import os
reader, writer = os.pipe()
os.write(writer, b"x")
assert os.get_blocking(reader) and not os.get_inheritable(writer)
os.close(writer)
value = os.read(reader, 5).decode()
assert os.read(reader, 5) == b"" and not os.listdir("/dev/shm")
""",
    "facts": """
import os
assert "MemTotal" in open("/proc/meminfo").read() and "processor" in open("/proc/cpuinfo").read()
assert "Threads" in open("/proc/self/status").read() and open("/proc/1/stat").read().startswith("1 ")
value = "x" if "/" in open("/proc/self/maps").read() else ""
""",
    "null": "open('/dev/null', 'w').write('x'); value = 'x'",
    "user's name": "import getpass, pwd, os; value = 'x' if pwd.getpwuid(os.getuid()).pw_name else ''",
    "processors": "import os; value = 'x' if os.cpu_count() else ''",
    "time": "import time, datetime; time.sleep(0.001); datetime.datetime.now().astimezone(); value = 'x'",
    "signal to itself": """
import signal
got = []
signal.signal(signal.SIGUSR1, lambda *_: got.append("x"))
signal.raise_signal(signal.SIGUSR1)
value = got[0]
""",
    "copy and remove": """
import os, shutil
os.makedirs("d/e")
open("d/e/f", "w").write("x")
shutil.copyfile("d/e/f", "g")
value = open("g").read()
shutil.rmtree("d")
""",
}


@pytest.mark.parametrize("what", WORKS)
def test_works(child, answer, what):
    reply = answer(child, WORKS[what])
    assert reply.get("value") == "x", reply


def test_a_course_beside_the_packages_is_hidden(start_host, answer):
    """A hidden folder below a readable one is empty; what Python needs within it stays."""
    library = Path(os.__file__).parent
    with (
        start_host(hidden=[library / "json"]) as host,
        host.spawn(start_limits()) as running,
    ):
        value = answer(running, f"import os; value = os.listdir({str(library / 'json')!r})")["value"]
        assert value == []
        assert answer(running, "import wave; value = 1")["value"] == 1


def test_environment_inside_a_hidden_folder_stays(start_host, answer):
    """`course/.venv` lies within the course: only the course around it disappears."""
    with start_host(hidden=[Path(sys.prefix).parent]) as host, host.spawn(start_limits()) as running:
        code = f"import os, pytest; value = os.listdir({str(Path(sys.prefix).parent)!r})"
        reply = answer(running, code)
        assert reply.get("value") == [Path(sys.prefix).name] or reply.get("error") == "PermissionError"


def start_limits():
    from grader.sandbox import ProcessLimits

    return ProcessLimits(memory_mb=200)
