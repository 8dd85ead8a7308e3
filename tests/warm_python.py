"""Scripts in processes of their own that need not import anything: forks of one that has the engine loaded.

For tests of what a kill leaves behind, which end many processes.
"""

import importlib
import io
import json
import os
import pkgutil
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import pytest

TESTS = Path(__file__).parent
ROOMY = 10_000  # megabytes; scripts of tests are trusted


def serve(reader: BinaryIO, writer: BinaryIO) -> None:
    """Run the script of one request; what it prints is the reply."""
    asked = json.loads(reader.readline())
    os.environ.clear()
    os.environ.update(asked["environment"])
    os.chdir(asked["folder"])
    sys.argv = ["-c", *asked["arguments"]]
    sys.stdout = io.TextIOWrapper(writer, "utf-8", write_through=True)
    # what was a file when the host began is a pipe now
    sys.stderr = io.TextIOWrapper(open(2, "wb", 0, closefd=False), "utf-8", write_through=True)  # noqa: SIM115
    exec(compile(asked["script"], "<script>", "exec"), {"__name__": "__main__"})  # noqa: S102
    sys.stdout.flush()


def prepare() -> None:
    """Load the engine but for what loads PyTorch."""
    import grader

    for found in pkgutil.walk_packages(grader.__path__, "grader."):
        parts = found.name.split(".")
        if parts[1] not in ("__main__", "judge", "worker", "training", "kit") and "migrations" not in parts:
            importlib.import_module(found.name)


class Script:
    """A script at work.

    Attributes:
        said: What it prints, line by line.
    """

    def __init__(self, child: Any, asked: dict[str, Any]) -> None:
        """Begin."""
        self._child = child
        child.writer.write(json.dumps(asked).encode() + b"\n")
        child.writer.flush()
        self.said = io.TextIOWrapper(io.BufferedReader(child.reader), "utf-8")

    def kill(self) -> None:
        """As by a power cut."""
        os.kill(self._child.pid, 9)

    def rest(self) -> str:
        """What else it prints until its end."""
        return self.said.read()

    def ended(self) -> int:
        """Its exit code, or the number of the signal that ended it, negative."""
        end = self._child.wait(60)
        assert end is not None, "it still runs after a minute"
        return -end.signal if end.signal else end.code

    def close(self) -> None:
        """End it."""
        self.said.close()
        self._child.close()

    def complaint(self) -> str:
        """The end of what it wrote to its standard error."""
        return self._child.stderr_tail()


Start = Callable[..., Script]


@pytest.fixture(scope="session")
def _pythons() -> Iterator[Any]:
    from grader.sandbox.host_client import Host

    if sys.platform != "linux":
        pytest.skip("such processes need Linux")
    with Host.start("warm_python", env={"PYTHONPATH": str(TESTS)}, timeout=120) as host:
        yield host


@pytest.fixture
def start_script(_pythons: Any) -> Iterator[Start]:
    """Start a script: `start_script(text, *arguments, folder=..., environment=...)`."""
    from grader.sandbox.process_limits import ProcessLimits

    limits = ProcessLimits(memory_mb=ROOMY, file_mb=ROOMY)
    scripts: list[Script] = []

    def start(
        script: str,
        *arguments: object,
        folder: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> Script:
        asked = {
            "script": script,
            "arguments": list(map(str, arguments)),
            "folder": str(folder or Path.cwd()),
            "environment": dict(os.environ if environment is None else environment),
        }
        scripts.append(Script(_pythons.spawn(limits), asked))
        return scripts[-1]

    yield start
    for script in scripts:
        script.close()


if __name__ == "__main__":
    from grader.sandbox import forkserver
    from grader.sandbox.lockdown import Lockdown

    forkserver.main(serve, prepare, Lockdown.NONE)
