"""Hosts that outlive a test: each loads PyTorch for seconds, so that the tests of a process share them."""

import contextlib
import hashlib
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from grader.cli import cli
from grader.domain.errors import SandboxError
from grader.sandbox.host_client import Host
from grader.sandbox.readable_files import NOTHING, GivenFiles

# judges hold the checks of one assignment, workers what it provides, and tests make assignments of their own;
# with more hosts a machine has no memory left for the files of PyTorch, and reads them again and again
MOST_JUDGES = 3
MOST_OTHERS = 3
JUDGE = "grader.judge"


class WarmHosts:
    """Starts hosts as `Host.start` does, but for a host like one that is there.

    Submissions' processes are the same in both: a host forks one for each. All hosts hide the folders of the
    tests and the course, so that it does not matter which of these was asked for.
    """

    def __init__(self, start: Any, hidden: Sequence[Path], folder: Path) -> None:
        """The real `Host.start`, what every host hides, and where assignments are kept for their judges."""
        self._start = start
        self._hidden = tuple(hidden)
        self._folder = folder
        self._hosts: dict[tuple[object, ...], Host] = {}

    def start(
        self,
        module: str,
        arguments: Sequence[str] = (),
        *,
        hidden: Sequence[Path] = (),
        unofficial: bool = False,
        in_package: bool = False,
        wrapped: bool = False,
        given: GivenFiles = NOTHING,
    ) -> Host:
        """A client of a host, which ends with the tests; skips where the machine does not isolate enough."""
        if module == JUDGE:
            arguments = [str(self._kept(Path(arguments[0])))]
        contents = [(name, path.read_bytes()) for name, path in sorted(given.files.items())]
        kept = hashlib.sha256(repr((contents, sorted(given.cached.items()))).encode()).hexdigest()
        kind = (module, *arguments, unofficial, in_package, wrapped, kept)
        host = self._hosts.pop(kind, None)
        if host is not None and host._process is not None and host._process.poll() is not None:
            host = None
        if host is None:
            asked = {
                "hidden": self._hidden,
                "unofficial": unofficial,
                "in_package": in_package,
                "wrapped": wrapped,
                "given": given,
            }
            try:
                host = self._start(module, arguments, **asked)
            except SandboxError as error:
                pytest.skip(f"this machine gives too little isolation: {error}")
        self._hosts[kind] = host  # the last one is the one that was asked for last
        judges = [one for one in self._hosts if one[0] == JUDGE]
        others = [one for one in self._hosts if one[0] != JUDGE]
        for one in (*judges[:-MOST_JUDGES], *others[:-MOST_OTHERS]):
            self._hosts.pop(one).close()
        return Host.connect(host.address)

    def _kept(self, assignment: Path) -> Path:
        """The assignment as it is now: tests change theirs later."""
        files = sorted(path for path in assignment.rglob("*") if path.is_file())
        content = hashlib.sha256()
        for path in files:
            content.update(f"{path.relative_to(assignment)}\0{path.stat().st_size}\0".encode())
            content.update(path.read_bytes())
        kept = self._folder / content.hexdigest()[:16] / assignment.name
        if not kept.exists():
            shutil.copytree(assignment, kept)
        return kept

    @contextlib.contextmanager
    def shared(self) -> Iterator[None]:
        """Meanwhile whoever starts a host gets one of these."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Host, "start", self.start)
            yield

    def close(self) -> None:
        """End them all."""
        for host in self._hosts.values():
            host.close()


@pytest.fixture(scope="session")
def warm_hosts(course_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WarmHosts]:
    """The hosts that tests share: `with warm_hosts.shared(): ...`."""
    hidden = (course_root, tmp_path_factory.getbasetemp())
    hosts = WarmHosts(Host.start, hidden, tmp_path_factory.mktemp("judged"))
    yield hosts
    hosts.close()


@pytest.fixture
def on_warm_hosts(warm_hosts: WarmHosts) -> Iterator[None]:
    """A test of what comes before and after the hosts: those that it starts are there."""
    with warm_hosts.shared():
        yield


@pytest.fixture
def grader(on_warm_hosts: None) -> Callable[..., Result]:
    """Run the command line in this process, its hosts being there: `grader("grade", folder, ...)`."""

    def run(*words: object) -> Result:
        done = CliRunner().invoke(cli, list(map(str, words)), prog_name="grader")
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        return done

    return run
