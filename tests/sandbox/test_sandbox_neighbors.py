"""Two workers side by side: what one does changes nothing that the other one can ask the kernel for.

Each way is tried without layers too, where it must work: otherwise the test would show nothing.
"""

import os
from pathlib import Path

import pytest

from grader.sandbox import ProcessLimits

SHARED = "import ctypes, errno, fcntl, mmap, os, resource, signal, struct, sys, time\n"
# the kernel counts some numbers by processor
SHARED += "os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
LOCK = "struct.pack('hhqqi4x', fcntl.F_RDLCK, 0, 0, 0, 0)"
# what a neighbor does, and what asks for a trace of it; the second half leaves a trace without the layers
WAYS = {
    "flock": (
        "sys.held = open(file); fcntl.flock(sys.held, fcntl.LOCK_EX)",
        """
with open(file) as other:
    try:
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        value = "free"
    except OSError as error:
        value = error.errno
""",
    ),
    "a record lock": (
        f"sys.record = open(file); fcntl.fcntl(sys.record, fcntl.F_SETLK, {LOCK})",
        """
own = struct.pack('hhqqi4x', fcntl.F_WRLCK, 0, 0, 0, 0)
with open(file) as other:
    try:
        value = struct.unpack('hhqqi4x', fcntl.fcntl(other, fcntl.F_GETLK, own))[0]
    except OSError as error:
        value = error.errno
""",
    ),
    "a lock of an open file": (
        f"sys.described = open(file); fcntl.fcntl(sys.described, 37, {LOCK})",
        """
own = struct.pack('hhqqi4x', fcntl.F_WRLCK, 0, 0, 0, 0)
with open(file) as other:
    try:
        value = struct.unpack('hhqqi4x', fcntl.fcntl(other, 36, own))[0]
    except OSError as error:
        value = error.errno
""",
    ),
    "a hint about how long a file's data lives": (
        """
sys.hints = getattr(sys, "hints", 1) % 5 + 1
fcntl.fcntl(open(file), 1036, struct.pack("Q", sys.hints))
""",
        """
try:
    value = struct.unpack("Q", fcntl.fcntl(open(file), 1035, bytes(8)))[0]
except OSError as error:
    value = error.errno
""",
    ),
    "the numbers of pipes": (
        "for _ in range(5000):\n    for end in os.pipe(): os.close(end)",
        """
ends = os.pipe()
number = os.fstat(ends[0]).st_ino
[os.close(end) for end in ends]
asked, sys.asked = number - getattr(sys, "asked", number), number
value = asked > 100
""",
    ),
    "the numbers of descriptors in /proc": (
        "for _ in range(5000):\n    for end in os.pipe(): os.close(end)",
        """
try:
    copy = os.dup(0)
    number = os.lstat(f"/proc/self/fd/{copy}").st_ino
    step, sys.step = number - getattr(sys, "step", number), number
    value = step > 100
except OSError as error:
    value = error.errno
""",
    ),
    "the numbers of shared memory": (
        "for _ in range(5000): mmap.mmap(-1, 4096).close()",
        """
with mmap.mmap(-1, 4096) as memory:
    rows = [row.split() for row in open("/proc/self/maps") if "/dev/zero" in row]
number = int(rows[-1][4]) if rows else 0
moved, sys.moved = number - getattr(sys, "moved", number), number
value = moved > 100
""",
    ),
    "the dates of a device": (
        "os.utime('/dev/null', (1, sys.dates)) if hasattr(sys, 'dates') else setattr(sys, 'dates', 5)",
        "value = os.stat('/dev/null').st_mtime_ns",
    ),
    "the number of files that are open": (
        "sys.open = [open('/dev/null') for _ in range(200)]",
        """
try:
    value = int(open("/proc/sys/fs/file-nr").read().split()[0]) // 150
except OSError as error:
    value = error.errno
""",
    ),
    "the load": (
        "end = time.time() + 0.3\nwhile time.time() < end: pass",
        """
value = [row.split()[:5] for row in open("/proc/stat") if row.startswith("cpu ")]
""",
    ),
    "the machine's memory": (
        "sys.memory = bytearray(os.urandom(1)) * 90_000_000",
        """
rows = open("/proc/meminfo").read().split()
value = int(rows[rows.index("MemFree:") + 1]) // 50_000
""",
    ),
    "what the machine counts of the system": (
        "sys.more = bytearray(os.urandom(1)) * 90_000_000",
        """
libc = ctypes.CDLL(None, use_errno=True)
told = ctypes.create_string_buffer(200)
value = [libc.sysinfo(told), struct.unpack_from("l" * 6, told.raw)[5] // 50_000_000]
""",
    ),
    "whether a file is in memory": (
        "os.posix_fadvise(os.open(file, os.O_RDONLY), 0, 0, os.POSIX_FADV_DONTNEED)",
        """
with open(file, "rb") as stream, mmap.mmap(stream.fileno(), 0, prot=mmap.PROT_READ) as pages:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    place = libc.mmap(None, ctypes.c_size_t(4096), 1, 1, stream.fileno(), ctypes.c_long(0))
    told = ctypes.create_string_buffer(1)
    value = [libc.mincore(ctypes.c_void_p(place), ctypes.c_size_t(4096), told), told.raw[0] & 1]
    stream.read()
""",
    ),
    "the room on the disk": (
        "open('filling', 'wb').write(bytes(3_000_000))",
        "value = [os.statvfs(place).f_bfree for place in ('.', '/tmp')]",
    ),
    "the numbers of files": (
        "for number in range(200): open(f'f{number}', 'w').close()",
        """
with open("own", "w") as stream:
    value = os.fstat(stream.fileno()).st_ino
os.unlink("own")
sys.first = min(value, getattr(sys, "first", value))
value = value - sys.first < 50
""",
    ),
}
# without layers these depend on the machine: what is in memory and who else takes some, how its disks count
UNSURE = {
    "the machine's memory",
    "what the machine counts of the system",
    "the room on the disk",
    "the numbers of files",
    "whether a file is in memory",
    "the dates of a device",
}
ROUNDS = 3


@pytest.fixture(scope="module")
def neighbors(host):
    """Two workers with all layers."""
    limits = ProcessLimits(memory_mb=400, scratch_mb=8, file_mb=4, processes=8)
    with host.spawn(limits) as one, host.spawn(limits) as other:
        yield one, other


@pytest.fixture(scope="module")
def without_layers(start_host):
    """Two processes of a host that puts no layer on them."""
    limits = ProcessLimits()
    started = start_host(env={"LAYERS": "trusted"})
    with started as host, host.spawn(limits) as one, host.spawn(limits) as other:
        yield one, other


def heard(answer, pair, way):
    """What the second one is told before, between and after the first one's doings."""
    # a file of the standard library for each way: locks of one kind are seen by the others
    files = sorted(Path(os.__file__).parent.glob("*.py"))
    act, ask = (f"{SHARED}file = {str(files[list(WAYS).index(way)])!r}\n{code}" for code in WAYS[way])
    one, other = pair
    found = [answer(other, ask)]
    for _ in range(ROUNDS):
        answer(one, act)
        found.append(answer(other, ask))
    assert all("value" in each for each in found), found
    return [each["value"] for each in found]


@pytest.mark.sampled(5)
@pytest.mark.parametrize("way", WAYS)
def test_a_neighbor_tells_nothing(neighbors, answer, way):
    values = heard(answer, neighbors, way)
    assert values == [values[0]] * len(values)


@pytest.mark.parametrize("way", sorted(set(WAYS) - UNSURE))
def test_without_layers_it_does(without_layers, answer, way):
    if os.geteuid() != 0:
        pytest.skip("limits of the user may get in the way")
    values = heard(answer, without_layers, way)
    assert values != [values[0]] * len(values)


FUTEX = """
import ctypes, mmap, os, time
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
with open(os.__file__, "rb") as stream:
    word = ctypes.c_void_p(libc.mmap(None, ctypes.c_size_t(4096), 1, 1, stream.fileno(), ctypes.c_long(0)))
"""


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the numbers are those of x86-64")
def test_a_word_of_a_shared_file_wakes_nobody(neighbors, answer):
    """FUTEX_WAIT on a page of a file that both see, and FUTEX_WAKE by the other one."""
    one, other = neighbors
    waits = """
import threading
def wait():
    first = ctypes.c_uint.from_address(word.value).value
    soon = (ctypes.c_long * 2)(2, 0)
    sys.waited = libc.syscall(202, word, 0, first, soon, None, 0), ctypes.get_errno()
import sys
sys.thread = threading.Thread(target=wait)
sys.thread.start()
time.sleep(0.3)
"""
    assert "error" not in answer(one, FUTEX + waits)
    assert answer(other, FUTEX + "value = libc.syscall(202, word, 1, 10, None, None, 0)")["value"] == 0
    ended = answer(one, "import sys; sys.thread.join(); value = sys.waited")["value"]
    assert ended == [-1, 110]
