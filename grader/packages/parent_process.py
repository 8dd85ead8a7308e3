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
from pathlib import Path

from grader.domain.errors import UsageError
from grader.packages.failed_run import (
    NOT_FINISHED,
    failed_document,
    is_result,
    out_of_memory,
    out_of_time,
    packed,
)
from grader.packages.package_settings import PackageSettings, read_settings
from grader.packages.package_tree import TREES, PackageTree, write_atomically
from grader.packages.run_processes import RunProcesses, adopted_orphans

_POLL_SECONDS = 0.5
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
    not_finished = packed(failed_document(kind, settings.translated(NOT_FINISHED)))
    write_atomically(tree.results, not_finished)
    folder = Path(tempfile.mkdtemp(prefix="grader-run-"))
    try:
        reason = _run(kind, tree, settings, folder / "outcome.json")
        if reason:
            sys.stdout.write(f"Ended: {reason}\n")
        failed = packed(failed_document(kind, settings.translated(reason))) if reason else not_finished
        return _accepted(kind, folder / "outcome.json") or failed
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
    with adopted_orphans() as others:
        process = subprocess.Popen(
            grading_command(kind, tree, outcome),
            stdin=subprocess.DEVNULL,
            cwd="/",
            env=environment,
            start_new_session=True,
        )
        _offer_to_be_killed_first(process.pid)
        started = RunProcesses(process.pid, others)
        try:
            while process.poll() is None:
                if time.monotonic() > deadline:
                    return out_of_time(settings.minutes)
                most = max(most, started.memory())
                if most > settings.memory_mb * _MEGABYTE:
                    return out_of_memory(settings.memory_mb)
                started.reap_orphans()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(_POLL_SECONDS)
        finally:
            process.kill()  # nothing, where it has ended
            process.wait()
            started.end()
            sys.stdout.write(f"At most {most // _MEGABYTE} MB of memory were used.\n")
    # nobody but the kernel kills it, and it does so where memory has run out
    return out_of_memory(settings.memory_mb) if process.returncode == -signal.SIGKILL else ""


def _offer_to_be_killed_first(pid: int) -> None:
    """When memory runs out, the grading process ends before its parent."""
    with contextlib.suppress(OSError):
        Path(f"/proc/{pid}/oom_score_adj").write_text("500")
