"""Checks in the kernel that a notebook works with: `grader.check(...)`, and `%%check` above a cell."""

import contextlib
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from grader.domain.errors import GraderError
from grader.jupyter.check_client import CheckProcess
from grader.jupyter.check_result import CheckResult, executed_texts, refused, result_of

MAGIC = re.compile(r"\s*%%check(?![\w?])(?P<part>[^\n?]*)")
ELSEWHERE = "grader.check(...) is for notebooks; on a terminal, it is: grader check FILE"
STARTING = "Starting (the first time, PyTorch is slow to load) ..."


class KernelChecks:
    """What a kernel's checks need to know: what it executed, and which assignment it is about."""

    def __init__(self, shell: Any) -> None:
        """Have a shell know `%%check`, and remember which execution is of which cell."""
        self._shell = shell
        self._process = CheckProcess()
        self._folder: str | None = None
        self._cells: dict[int, str] = {}  # number of an execution -> the cell's id
        self._remember(len(self._executed()) - 1, _cell_that_is_executed(shell))
        # So the cell itself is executed as any other: its error, its lines and its output are Jupyter's own.
        # A magic function would execute it within itself.
        shell.input_transformers_cleanup.insert(0, without_magic)
        shell.events.register("pre_run_cell", self._before)
        shell.events.register("post_run_cell", self._after)

    def checked(self, part: str, assignment: str | None = None) -> CheckResult:
        """What the checks find out about what was executed so far; it is shown, too."""
        self._folder = assignment if assignment is not None else self._folder
        output = _Output(self._shell)
        output.show(refused(STARTING))
        try:
            for answer in self._process.answers(self._request(part)):
                result = result_of(answer, len(self._executed()))
                output.show(result)
        except GraderError as error:
            result = refused(str(error), len(self._executed()))
            output.show(result)
        except KeyboardInterrupt:
            self._process.close()
            output.show(refused("Stopped."))
            raise
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
        """What was executed: `In[1]` is the first, and there is an `In[0]`."""
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
    """One output that is replaced, where there is a front end; elsewhere the last one is printed."""

    def __init__(self, shell: Any) -> None:
        self._live = getattr(shell, "kernel", None) is not None
        self._handle: Any = None
        self._last: CheckResult | None = None

    def show(self, result: CheckResult) -> None:
        """Put this in the place of what was shown."""
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
    """A cell's lines, in which `%%check` above it is a remark, so that every line keeps its number."""
    first = next((index for index, line in enumerate(lines) if line.strip()), None)
    if first is None or not MAGIC.match(lines[first]):
        return lines
    return [*lines[:first], f"# {lines[first].lstrip()}", *lines[first + 1 :]]


def _cell_that_is_executed(shell: Any) -> str | None:
    """The id of the cell that imports this: nobody was told when it began."""
    header = getattr(shell, "parent_header", None) or {}
    found = header.get("metadata", {}).get("cellId") if isinstance(header, dict) else None
    return found if isinstance(found, str) else None


_known: list[KernelChecks] = []


def activate(shell: Any) -> KernelChecks:
    """The checks of a shell, which knows of them from now on."""
    if not _known:
        _known.append(KernelChecks(shell))
    return _known[0]


def check_here(part: str, assignment: str | None) -> CheckResult | None:
    """See `grader.check`."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is None:
        print(ELSEWHERE, file=sys.stderr)  # noqa: T201
        return None
    return activate(shell).checked(part, assignment)
