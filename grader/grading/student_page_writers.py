"""Writes students' pages while a class is graded: in the thread that asks, or in processes of their own.

A page takes several times as long as its record in the gradebook. On one machine that is little beside the
checks; a coordinator of many machines would do nothing else.
"""

import contextlib
import gc
import multiprocessing
import os
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

from grader.domain.assignment import Assignment
from grader.domain.submission_result import Result
from grader.results.class_files import put_student_pages, rendered_student
from grader.results.class_pages import writing

_ALLOCATIONS = 100_000  # a page makes thousands of short-lived objects and no cycles: look for those seldom
_WAITING_EACH = 4  # pages that wait for each process, at most: they are held in memory


class StudentPageWriter(Protocol):
    """Writes the pages of one student after another; it is asked from several threads at once."""

    def write(self, result: Result, images: Mapping[str, bytes], now: datetime) -> None:
        """Write a student's pages: see `write_student`.

        Raises:
            UsageError: Some page cannot be written, this one or an earlier one.
        """


@dataclass(frozen=True)
class WrittenHere:
    """Writes them before it returns."""

    assignment: Assignment
    out: Path

    def write(self, result: Result, images: Mapping[str, bytes], now: datetime) -> None:
        """See `StudentPageWriter`."""
        _write(self.assignment, self.out, result, images, now)


class _WrittenByProcesses:
    """Hands them to processes, and waits only if these have enough to do."""

    def __init__(self, pool: ProcessPoolExecutor, processes: int) -> None:
        self._pool = pool
        self._places = threading.Semaphore(_WAITING_EACH * processes)
        self._failure: BaseException | None = None

    def write(self, result: Result, images: Mapping[str, bytes], now: datetime) -> None:
        """See `StudentPageWriter`."""
        self._places.acquire()
        self.require_success()
        self._pool.submit(_write_in_process, result, dict(images), now).add_done_callback(self._done)

    def require_success(self) -> None:
        """Raise what has kept a page from being written."""
        if self._failure is not None:
            raise self._failure

    def _done(self, written: "Future[None]") -> None:
        self._places.release()
        if not written.cancelled():
            self._failure = self._failure or written.exception()


@contextlib.contextmanager
def student_page_writer(assignment: Assignment, out: Path, processes: int) -> Iterator[StudentPageWriter]:
    """A writer of the students' pages of a folder; they are all written when the context ends.

    Args:
        processes: How many processes of their own they are written in; 0: none.

    Raises:
        UsageError: Some page cannot be written.
    """
    if not processes:
        yield WrittenHere(assignment, out)
        return
    # a fork of a process with threads could inherit a lock that nobody opens
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(processes, context, _begin, (assignment, out))
    try:
        writer = _WrittenByProcesses(pool, processes)
        yield writer
        pool.shutdown()
        writer.require_success()
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        raise


def _write(
    assignment: Assignment, out: Path, result: Result, images: Mapping[str, bytes], now: datetime
) -> None:
    pages = rendered_student(assignment, result, images, now)  # what takes long keeps nobody from writing
    with writing(out):
        put_student_pages(result.evidence, pages, out)


# --- in a process that writes ----------------------------------------------------------------------------


_given: tuple[Assignment, Path] | None = None


def _begin(assignment: Assignment, out: Path) -> None:
    global _given
    _given = assignment, out
    gc.freeze()  # what is loaded stays
    gc.set_threshold(_ALLOCATIONS)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """A run that is killed closes no pool, and its processes would wait for work for ever."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _write_in_process(result: Result, images: Mapping[str, bytes], now: datetime) -> None:
    assert _given is not None
    _write(*_given, result, images, now)
