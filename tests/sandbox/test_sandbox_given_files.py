"""Files that a host's children are given: there for each of them, the same for all, changed by none."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from grader.domain.errors import SandboxError
from grader.sandbox import ProcessLimits
from grader.sandbox.given_files import GivenFiles
from grader.sandbox.lockdown import Layer

PLACE = "torch/hub/checkpoints/tiny.pth"
READ = """
import os
value = [open("corpus.txt").read(), sorted(os.listdir()), os.environ.get("HF_HUB_OFFLINE")]
value.append(open(os.environ["TORCH_HOME"] + "/hub/checkpoints/tiny.pth").read())
"""
CHANGES = (
    'open("corpus.txt", "w")',
    'open("corpus.txt", "r+b")',
    'import os; os.remove("corpus.txt")',
    'import os; os.rename("corpus.txt", "other.txt")',
    'import os; open("other.txt", "w").close(); os.replace("other.txt", "corpus.txt")',
    'import os; os.truncate("corpus.txt", 0)',
    'import os; os.chmod("corpus.txt", 0o777)',
    'import os; os.utime("corpus.txt", (1, 1))',
    'import os; open(os.environ["TORCH_HOME"] + "/hub/checkpoints/tiny.pth", "r+b")',
    'import os; os.mkdir(os.environ["TORCH_HOME"] + "/more")',
)


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> GivenFiles:
    """A text, and weights that a library would download."""
    folder = tmp_path_factory.mktemp("provided")
    files = {name: folder / name for name in ("corpus.txt", "tiny.pth")}
    for name, path in files.items():
        path.write_text(f"this is {name}")
    return GivenFiles(files, {PLACE: "tiny.pth"})


def test_every_child_reads_them_and_none_changes_them(
    start_host: Callable[..., Any], host: object, given: GivenFiles, answer: Callable[..., Any]
) -> None:
    with start_host(given=given) as running:
        for path in given.files.values():
            path.write_text("changed later")
        for _ in range(2):
            with running.spawn(ProcessLimits(memory_mb=200, file_mb=4)) as child:
                text, there, offline, cached = answer(child, READ)["value"]
                assert (text, there) == ("this is corpus.txt", ["corpus.txt", "tiny.pth"])
                assert (offline, cached) == ("1", "this is tiny.pth")
                for change in CHANGES:
                    assert answer(child, change).get("error") in ("OSError", "PermissionError"), change
                assert answer(child, READ)["value"][0] == "this is corpus.txt"


def test_a_child_that_is_given_nothing_has_no_cache(child: Any, answer: Callable[..., Any]) -> None:
    code = "import os; value = [os.listdir(), [n for n in os.environ if n.startswith(('TORCH', 'HF'))]]"
    assert answer(child, code)["value"] == [[], []]


def test_without_a_root_of_its_own_a_child_has_copies(
    start_host: Callable[..., Any], host: object, given: GivenFiles, answer: Callable[..., Any]
) -> None:
    """What it does to them, no other child sees."""
    kept = ",".join(layer for layer in Layer if layer != Layer.NAMESPACES)
    with start_host(env={"LAYERS": kept}, unofficial=True, given=given) as weak:
        try:
            first = weak.spawn(ProcessLimits())
        except SandboxError as error:
            if os.geteuid() == 0 and "chmod" in str(error):
                pytest.skip("without a root of its own, another uid cannot reach this interpreter")
            raise
        with first, weak.spawn(ProcessLimits()) as second:
            assert answer(first, READ)["value"][3] == answer(second, READ)["value"][3]
            answer(first, 'import os; os.remove("corpus.txt"); open("corpus.txt", "w").write("mine")')
            assert answer(first, READ)["value"][0] == "mine"
            assert answer(second, READ)["value"][0] == answer(second, READ)["value"][0] != "mine"


def test_the_originals_are_not_linked(given: GivenFiles, tmp_path: Path) -> None:
    from grader.sandbox.given_files import cache_in, files_in, lay_out

    root = lay_out(given, tmp_path)
    assert root is not None
    assert [path.name for path in files_in(root)] == ["corpus.txt", "tiny.pth"]
    for path in files_in(root):
        assert path.stat().st_mode & 0o777 == 0o444
        assert path.stat().st_ino != given.files[path.name].stat().st_ino
    cache = cache_in(root)
    assert cache is not None and (cache / PLACE).is_file()
    assert lay_out(GivenFiles(), tmp_path / "none") is None
