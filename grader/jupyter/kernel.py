"""Checks in the kernel that a notebook works with: `grader.check(...)`, and `%%check` above a cell.

It remembers what the kernel executed, starts the process that makes the checks, asks it, and shows the
result below the cell. It imports nothing slow, because the kernel is the student's. It never makes a check
or decides what a finding means: `grader.jupyter.check_service` does.
"""

import contextlib
import html
import json
import os
import re
import site
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, cast

from grader.domain.errors import EngineError, GraderError
from grader.domain.evidence import Blame, Finding, FindingKind, Status

SERVICE = "grader.jupyter.check_service"
STOP_SECONDS = 5.0
LONGEST_LAST_LINE = 300  # characters


class CheckProcess:
    """A process that answers one request after another, and is replaced if it has ended in between."""

    def __init__(self, module: str = SERVICE) -> None:
        """Start nothing yet.

        Args:
            module: What the process runs.
        """
        self._module = module
        self._process: subprocess.Popen[str] | None = None
        self._stderr: IO[bytes] | None = None  # what the process prints besides its answers

    def answers(self, request: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """The answers to a request; the last one is marked as such.

        Raises:
            EngineError: It could not be started, or ended before it had answered.
        """
        process = self._running()
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
            for line in process.stdout:
                answer = json.loads(line)
                yield answer
                if answer["last"]:
                    return
        except OSError:
            pass  # it ended
        last_words = self._last_words()
        self.close()
        raise EngineError(f"The process that makes the checks ended ({last_words}). Check again.")

    def _running(self) -> "subprocess.Popen[str]":
        if self._process is None or self._process.poll() is not None:
            self.close()
            self._process = self._started()
        return self._process

    def _started(self) -> "subprocess.Popen[str]":
        # -P, or a student's file that is named torch.py would be imported in place of the library
        flags = ["-P"] if site.ENABLE_USER_SITE else ["-P", "-s"]
        # a kernel's backend draws into the notebook, which no other process can
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - it is open as long as the process runs
        environment = {name: value for name, value in os.environ.items() if name != "MPLBACKEND"}
        try:
            return subprocess.Popen(
                [sys.executable, *flags, "-m", self._module],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._stderr,
                encoding="utf-8",
                env=environment,
                # what interrupts the kernel does not interrupt it: see `close`
                start_new_session=True,
            )
        except OSError as error:
            raise EngineError(
                f"Python could not be started ({error}). Is {sys.executable} intact?"
            ) from error

    def _last_words(self) -> str:
        if self._stderr is None:
            return "it was not running"
        self._stderr.seek(0)
        lines = self._stderr.read().decode("utf-8", "replace").strip().splitlines()
        return lines[-1][:LONGEST_LAST_LINE] if lines else "it said nothing"

    def close(self) -> None:
        """End the process, with the workers that it started."""
        if self._stderr is not None:
            self._stderr.close()
            self._stderr = None
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                if pipe is not None:
                    pipe.close()
        self._process = None


# --- check result ----------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class CheckResult:
    """What the public checks found out.

    Attributes:
        passed: Whether everything that can be checked here is right, as for `grader check`: every check
            passes, nothing forbidden is used, and the training runs.
        findings: One per check; empty where nothing could be checked.
        bundle: What is displayed, by MIME type (Jupyter's MIME bundle).
        metadata: Of the output that shows it.
        shown_in: The number of executed cells when the check showed this result; 0 if it did not.
    """

    passed: bool
    findings: tuple[Finding, ...]
    bundle: Mapping[str, str] = field(compare=False)
    metadata: Mapping[str, bool] = field(default_factory=dict, compare=False)
    shown_in: int = field(default=0, compare=False)

    def __repr__(self) -> str:
        return self.bundle["text/plain"]

    def _repr_html_(self) -> str:
        return self.bundle["text/html"]

    def _ipython_display_(self) -> None:
        """Show it, but not again below the very check that has shown it."""
        shell = sys.modules["IPython"].get_ipython()
        if shell is None or len(executed_texts(shell)) != self.shown_in:
            from IPython.display import display

            display(dict(self.bundle), raw=True, metadata=dict(self.metadata))


def executed_texts(shell: Any) -> Sequence[str]:
    """What a shell executed, by the numbers that Jupyter shows: `In[1]` is the first, `In[0]` is a filler."""
    texts: Sequence[str] = shell.history_manager.input_hist_raw
    return texts


def result_of(answer: Mapping[str, Any], shown_in: int) -> CheckResult:
    """The result in the last answer of the process that makes the checks."""
    findings = tuple(_finding(fields) for fields in answer["findings"])
    return CheckResult(answer["passed"], findings, answer["shown"], answer["metadata"], shown_in)


def message_only(sentence: str, shown_in: int = 0) -> CheckResult:
    """A result that only shows a sentence, such as why nothing could be checked."""
    shown = {"text/plain": sentence, "text/html": f"<strong>{html.escape(sentence)}</strong>"}
    return CheckResult(False, (), shown, shown_in=shown_in)


def _finding(fields: Mapping[str, Any]) -> Finding:
    kinds = {"status": Status, "blame": Blame, "kind": FindingKind}
    typed = {
        name: kinds[name](value) if name in kinds and value is not None else value
        for name, value in fields.items()
    }
    return Finding(**cast("dict[str, Any]", typed))


# --- kernel ----------------------------------------------------------------------------------------------


MAGIC = re.compile(r"\s*%%check(?![\w?])(?P<part>[^\n?]*)")
UNNAMED = 'grader.check takes the name of a part, as in grader.check("Attention")'
UNPLACED = "assignment= takes the path of the folder that the course handed out"
ELSEWHERE = "grader.check(...) is for notebooks; on a terminal, it is: grader check FILE"
STARTING = "Starting (the first time, PyTorch is slow to load) ..."


class KernelChecks:
    """What a kernel's checks need to know: what it executed, and which assignment it is about."""

    def __init__(self, shell: Any) -> None:
        """Teach a shell `%%check`, and remember which cell each execution belongs to."""
        self._shell = shell
        self._process = CheckProcess()
        self._folder: str | None = None
        self._cells: dict[int, str] = {}  # number of an execution -> the cell's id
        self._remember(len(self._executed()) - 1, _cell_that_is_executed(shell))
        # So the cell itself is executed like any: its error, its lines and its output are Jupyter's own.
        # A magic function would execute it within itself.
        shell.input_transformers_cleanup.insert(0, without_magic)
        shell.events.register("pre_run_cell", self._before)
        shell.events.register("post_run_cell", self._after)

    def checked(self, part: str, assignment: str | None = None) -> CheckResult:
        """What the checks find out about what was executed so far; it is shown, too."""
        self._folder = assignment if assignment is not None else self._folder
        output = _Output(self._shell)
        output.show(message_only(STARTING))
        try:
            for answer in self._process.answers(self._request(part)):
                result = result_of(answer, len(self._executed()))
                output.show(result)
        except GraderError as error:
            result = message_only(str(error), len(self._executed()))
            output.show(result)
        except KeyboardInterrupt:
            self._process.close()
            output.show(message_only("Stopped."))
            raise
        output.end()
        return result

    def refused(self, sentence: str) -> CheckResult:
        """The result of what cannot be asked; it is shown, too."""
        output, result = _Output(self._shell), message_only(sentence, len(self._executed()))
        output.show(result)
        output.end()
        return result

    def _request(self, part: str) -> dict[str, Any]:
        texts = self._executed()
        return {
            "executions": [
                (number, texts[number], self._cells.get(number, "")) for number in range(1, len(texts))
            ],
            "working": str(Path.cwd()),
            "part": part,
            "folder": self._folder,
        }

    def _before(self, info: Any) -> None:
        if info.store_history:
            self._remember(len(self._executed()), getattr(info, "cell_id", None))

    def _executed(self) -> Sequence[str]:
        """What was executed: `In[1]` is the first; `In[0]` is a filler."""
        return executed_texts(self._shell)

    def _remember(self, number: int, cell: str | None) -> None:
        if cell:
            self._cells[number] = cell

    def _after(self, result: Any) -> None:
        """Check the part that is named above a cell, once the cell was executed without an error."""
        named = MAGIC.match(result.info.raw_cell)
        if named is not None and result.success:
            with contextlib.suppress(KeyboardInterrupt):  # "Stopped." is shown; the cell itself was executed
                self.checked(named["part"].strip())


class _Output:
    """One output that is updated, where there is a front end; elsewhere the last one is printed."""

    def __init__(self, shell: Any) -> None:
        self._live = getattr(shell, "kernel", None) is not None
        self._handle: Any = None
        self._last: CheckResult | None = None

    def show(self, result: CheckResult) -> None:
        """Replace what was shown with this."""
        self._last = result
        if not self._live:
            return
        from IPython.display import display

        shown: Mapping[str, Any] = {"raw": True, "metadata": dict(result.metadata)}
        if self._handle is None:
            self._handle = display(dict(result.bundle), display_id=True, **shown)
        else:
            self._handle.update(dict(result.bundle), **shown)

    def end(self) -> None:
        """Nothing follows."""
        if not self._live and self._last is not None:
            print(self._last)  # noqa: T201 - a shell on a terminal


def without_magic(lines: list[str]) -> list[str]:
    """A cell's lines, in which `%%check` above it becomes a comment, so that every line keeps its number."""
    first = next((index for index, line in enumerate(lines) if line.strip()), None)
    if first is None or not MAGIC.match(lines[first]):
        return lines
    return [*lines[:first], f"# {lines[first].lstrip()}", *lines[first + 1 :]]


def _cell_that_is_executed(shell: Any) -> str | None:
    """The id of the cell that imports this module: its start came before `KernelChecks` could note it."""
    header = getattr(shell, "parent_header", None) or {}
    cell_id = header.get("metadata", {}).get("cellId") if isinstance(header, dict) else None
    return cell_id if isinstance(cell_id, str) else None


_activated: list[KernelChecks] = []


def activate(shell: Any) -> KernelChecks:
    """The checks of a shell, which knows of them from now on."""
    if not _activated:
        _activated.append(KernelChecks(shell))
    return _activated[0]


def check_here(part: object, assignment: object) -> CheckResult | None:
    """See `grader.check`: a part is also known by its class or function, a folder by a path."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is None:
        print(ELSEWHERE, file=sys.stderr)  # noqa: T201
        return None
    name = part if isinstance(part, str) else getattr(part, "__name__", None)
    if not isinstance(name, str):
        return activate(shell).refused(f"{UNNAMED}, and got {part!r}.")
    if not isinstance(assignment, str | os.PathLike | None):
        return activate(shell).refused(f"{UNPLACED}, and got {assignment!r}.")
    folder = str(Path(assignment).expanduser()) if assignment is not None else None
    return activate(shell).checked(name, folder)
