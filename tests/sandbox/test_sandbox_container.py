"""The level `container`: in an imitation of a container without namespaces, and for packages alone."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
WHOLE, OLD_KERNEL, NO_FILTERS = "nothing", "landlock", "seccomp,landlock"


@pytest.fixture
def closed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a file, as the package's: only root may enter it."""
    folder = Path("/tmp") / f"grader-closed-{os.getpid()}"
    folder.mkdir(mode=0o700)
    (folder / "checks.py").write_text("expected = 3\n")
    yield folder
    (folder / "checks.py").unlink()
    folder.rmdir()


@pytest.fixture
def trial(closed: Path) -> Callable[..., dict[str, Any]]:
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("only root can imitate a container")

    def outcome(without: str = WHOLE, **request: Any) -> dict[str, Any]:
        command = [str(ROOT / "tests" / "packages" / "in_container.py"), "--without", without, sys.executable]
        command += [str(HERE / "container_trial.py"), json.dumps({"closed": str(closed), **request})]
        done = subprocess.run(
            [sys.executable, *command], capture_output=True, text=True, check=False, cwd=ROOT
        )
        assert done.stdout, done.stderr
        return json.loads(done.stdout)

    return outcome


def test_only_a_package_may_ask_for_it() -> None:
    asking = [
        path for path in (ROOT / "grader").rglob("*.py") if "in_package=True" in path.read_text("utf-8")
    ]
    assert {path.parent.name for path in asking} == {"packages"}


def test_without_namespaces_others_are_refused(trial: Callable) -> None:
    assert "too little isolation" in trial(in_package=False)["refused"]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("without", "layers"),
    [(WHOLE, {"seccomp", "landlock"}), (OLD_KERNEL, {"seccomp"}), (NO_FILTERS, set())],
)
def test_it_is_proved_with_what_the_kernel_gives(
    trial: Callable, closed: Path, without: str, layers: set[str]
) -> None:
    codes = [
        "import os; value = [os.getuid(), os.getgid()]",
        f"import os; value = os.listdir({str(closed)!r})",
        f"value = open({str(closed / 'checks.py')!r}).read()",
        "import os; os.setuid(0)",
        "import os; value = os.environ.get('GRADER_SECRET')",
        "import os; os.kill(os.getppid(), 9)",
        "import os; value = open(f'/proc/{os.getppid()}/environ').read()",
    ]
    proved = trial(without, codes=codes)
    assert proved["level"] == "container", proved
    always = {"canaries", "no_new_privs", "capabilities", "uid", "memory"}
    assert proved["layers"].keys() == always | layers
    assert any(sentence.startswith("namespaces") for sentence in proved["missing"])
    who, *attempts = proved["answers"]
    uid = int(proved["layers"]["uid"])
    assert uid >= 200_000 and who["value"] == [uid, uid]
    assert attempts.pop(3)["value"] is None
    assert all(answer.get("errno") in (1, 3, 13) for answer in attempts), attempts


@pytest.mark.slow
@pytest.mark.parametrize(
    ("step", "words"),
    [
        ("capabilities", "could still"),
        ("no_new_privs", "giving up capabilities|no_new_privs"),
        ("limits", "too weak"),
        ("descriptors", "use a descriptor"),
    ],
)
def test_a_step_that_is_left_out_is_seen(trial: Callable, step: str, words: str) -> None:
    refused = trial(NO_FILTERS, sabotage=step)["refused"]
    assert any(clause in refused for clause in words.split("|")), refused


def test_a_folder_that_is_left_open_is_seen(trial: Callable, closed: Path) -> None:
    closed.chmod(0o755)
    assert "enter a folder of the course" in trial(NO_FILTERS)["refused"]


def test_what_a_process_leaves_behind_ends_with_it(trial: Callable) -> None:
    """Where no filter keeps it from forking."""
    code = "import os, time\npid = os.fork()\nif pid == 0:\n    os.setsid()\n    time.sleep(600)\nvalue = pid"
    [answer] = trial(NO_FILTERS, codes=[code])["answers"]
    left = Path(f"/proc/{answer['value']}/stat")
    deadline = time.monotonic() + 10
    while left.exists() and left.read_text().rpartition(")")[2].split()[0] != "Z":
        assert time.monotonic() < deadline, "it goes on"
        time.sleep(0.1)
