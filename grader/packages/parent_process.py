"""The parent of a run: it alone writes the results, and does so whatever happens to the run.

It writes a valid file first, starts the grading as another process, watches its time and memory, and puts
what came of it in the place of the first file. It runs no code of a student's, imports nothing slow, and
decides nothing about points.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from grader.domain.errors import UsageError
from grader.packages.failed_run import (
    NOT_FINISHED,
    OUT_OF_MEMORY,
    OUT_OF_TIME,
    failed_document,
    is_result,
    packed,
)
from grader.packages.package_settings import PackageSettings, read_settings
from grader.packages.package_tree import TREES, PackageTree, write_atomically

_POLL_SECONDS = 0.5
_GRACE_SECONDS = 3.0  # less than what `PackageSettings.run_seconds` reserves
_MEGABYTE = 10**6
_MOST_RESULT_BYTES = 1_000_000  # PrairieLearn's limit
_KEPT_ENVIRONMENT = ("PATH", "LANG", "TZ", "LD_LIBRARY_PATH", "TMPDIR")


def supervised_run(kind: str, root: Path) -> None:
    """Grade the submission below a root, and leave a valid results file.

    Args:
        kind: `gradescope`, `container` or `prairielearn`.
        root: The other grader's folder: `/autograder`, `/grade`.
    """
    tree = TREES[kind](root.absolute())
    tree.results.parent.mkdir(parents=True, exist_ok=True)
    tree.close()
    write_atomically(tree.results, packed(failed_document(kind, NOT_FINISHED)))
    try:
        content = _outcome(kind, tree)
    except UsageError as error:
        sys.stdout.write(f"{error}\n")
        content = packed(failed_document(kind, NOT_FINISHED))
    write_atomically(tree.results, content)
    tree.open_results()


def _outcome(kind: str, tree: PackageTree) -> bytes:
    """What the results file is to hold."""
    settings = read_settings(tree.package)
    folder = Path(tempfile.mkdtemp(prefix="grader-run-"))
    try:
        reason = _run(kind, tree, settings, folder / "outcome.json")
        return _accepted(kind, folder / "outcome.json") or packed(
            failed_document(kind, reason or NOT_FINISHED)
        )
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _accepted(kind: str, path: Path) -> bytes | None:
    """What the grading process wrote, if the other grader would accept it."""
    try:
        content = path.read_bytes()
        fits = len(content) <= _MOST_RESULT_BYTES and is_result(kind, json.loads(content))
    except (OSError, ValueError):
        return None
    return content if fits else None


def grading_command(kind: str, tree: PackageTree, outcome: Path) -> list[str]:
    """What grades the submission, and writes what came of it into a file that only this process reads."""
    command = [sys.executable, "-P", "-s", "-m", "grader.packages"]
    return [*command, kind, str(tree.root), "--into", str(outcome)]


def _run(kind: str, tree: PackageTree, settings: PackageSettings, outcome: Path) -> str:
    """Have the submission graded; why that was ended, as a sentence, or empty."""
    environment = {name: os.environ[name] for name in _KEPT_ENVIRONMENT if name in os.environ}
    deadline = time.monotonic() + settings.run_seconds
    most = 0
    process = subprocess.Popen(
        grading_command(kind, tree, outcome),
        stdin=subprocess.DEVNULL,
        cwd="/",
        env=environment,
        start_new_session=True,
    )
    _offer_to_be_killed_first(process.pid)
    try:
        while process.poll() is None:
            if time.monotonic() > deadline:
                return OUT_OF_TIME.format(minutes=settings.minutes)
            most = max(most, _memory_of_all(process.pid))
            if most > settings.memory_mb * _MEGABYTE:
                return OUT_OF_MEMORY.format(memory=settings.memory_mb)
            time.sleep(_POLL_SECONDS)
    finally:
        _end(process)
        sys.stdout.write(f"At most {most // _MEGABYTE} MB of memory were used.\n")
    # nobody but the kernel kills it, and it does so where memory has run out
    return OUT_OF_MEMORY.format(memory=settings.memory_mb) if process.returncode == -signal.SIGKILL else ""


def _offer_to_be_killed_first(pid: int) -> None:
    """When memory runs out, the grading process ends before its parent."""
    with contextlib.suppress(OSError):
        Path(f"/proc/{pid}/oom_score_adj").write_text("500")


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End the grading process and all that it started.

    Hosts end with the process that started them, and first end what students' processes have left behind.
    """
    started = _descendants(process.pid)
    if process.poll() is None:
        process.kill()
    process.wait()
    patience = time.monotonic() + _GRACE_SECONDS
    while any(map(_runs, started)) and time.monotonic() < patience:
        time.sleep(_POLL_SECONDS / 5)
    for pid in started:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)


def _runs(pid: int) -> bool:
    """Whether a process has not ended; whoever is to wait for it may not have done so yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (OSError, IndexError):
        return False


def _memory_of_all(pid: int) -> int:
    """What a process and all that it started hold in memory, in bytes; what a fork shares counts once."""
    parents = dict(_started_by(pid))
    return sum(_memory(process, parent) for process, parent in [(pid, 0), *parents.items()])


def _memory(pid: int, parent: int) -> int:
    """What a process holds itself. Of one that hides what it shares: what it has more than who forked it."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    own = _beyond_files(pid)
    return max(own - _beyond_files(parent), 0) if parent and _is_fork(pid, parent) else own


def _beyond_files(pid: int) -> int:
    """What of a process's memory is no file's, in bytes; shared or not."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        resident, shared = map(int, Path(f"/proc/{pid}/statm").read_text().split()[1:3])
        return (resident - shared) * os.sysconf("SC_PAGE_SIZE")
    return 0


def _is_fork(pid: int, parent: int) -> bool:
    """Whether a process runs what its parent runs, and so began as a copy of its memory."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes() == Path(f"/proc/{parent}/cmdline").read_bytes()
    except OSError:
        return False


def _descendants(pid: int) -> list[int]:
    """The processes that a process started, and those that they started."""
    return [descendant for descendant, _ in _started_by(pid)]


def _started_by(pid: int) -> Iterator[tuple[int, int]]:
    """(process, its parent) of all that a process started, and of what these started."""
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):
                # the name of a program may hold anything, brackets included
                parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
                children.setdefault(parent, []).append(int(folder.name))
    waiting = [pid]
    while waiting:
        parent = waiting.pop()
        for child in children.get(parent, []):
            yield child, parent
            waiting.append(child)
