"""Files that a host's children are given: there for each of them, the same for all, changed by none."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from grader.domain.errors import SandboxError
from grader.sandbox import ProcessLimits
from grader.sandbox.lockdown import Layer
from grader.sandbox.readable_files import GivenFiles

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


def test_a_child_that_is_given_nothing_has_no_cache_and_downloads_nothing(
    child: Any, answer: Callable[..., Any]
) -> None:
    homes = "TORCH_HOME", "HF_HOME", "HF_HUB_CACHE"
    code = f"import os; value = [os.listdir(), [n for n in {homes} if n in os.environ]]"
    assert answer(child, code)["value"] == [[], []]
    code = "import os; value = os.environ.get('HF_HUB_OFFLINE'), os.environ.get('https_proxy')"
    assert answer(child, code)["value"] == ["1", "http://127.0.0.1:0"]


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
    from grader.sandbox.readable_files import cache_in, files_in, lay_out

    root = lay_out(given, tmp_path)
    assert root is not None
    assert [path.name for path in files_in(root)] == ["corpus.txt", "tiny.pth"]
    for path in files_in(root):
        assert path.stat().st_mode & 0o777 == 0o444
        assert path.stat().st_ino != given.files[path.name].stat().st_ino
    assert (cache_in(root) / PLACE).is_file()
    assert lay_out(GivenFiles(), tmp_path / "none") is None


REPOSITORY = "huggingface/hub/models--owner--net"


def test_a_file_of_the_hub_lies_where_libraries_look(given: GivenFiles, tmp_path: Path) -> None:
    """Of the place that an assignment states, owner, name and file are enough."""
    from grader.sandbox.readable_files import cache_in, lay_out

    places = {
        "huggingface/owner/net/model.safetensors": "tiny.pth",
        "huggingface/owner/net/a/b.txt": "corpus.txt",
    }
    root = lay_out(GivenFiles(given.files, places), tmp_path)
    assert root is not None
    repository = cache_in(root) / REPOSITORY
    revision = (repository / "refs" / "main").read_text()
    assert (repository / "snapshots" / revision / "model.safetensors").is_file()
    assert (repository / "snapshots" / revision / "a" / "b.txt").is_file()
    whole = {
        f"{REPOSITORY}/snapshots/abc/model.safetensors": "tiny.pth",
        f"{REPOSITORY}/refs/main": "corpus.txt",
    }
    root = lay_out(GivenFiles(given.files, whole), tmp_path / "whole")
    assert root is not None
    repository = cache_in(root) / REPOSITORY
    assert (repository / "refs" / "main").read_bytes() == given.files["corpus.txt"].read_bytes()
    assert (repository / "snapshots" / "abc" / "model.safetensors").is_file()


def test_hosts_of_different_assignments_share_no_cache(
    start_host: Callable[..., Any], host: object, given: GivenFiles, answer: Callable[..., Any]
) -> None:
    """Each has its own assignment's files, and the other's are nowhere."""
    found = """
import os
value = [
    sorted(os.path.join(folder, name) for top in (".", "/sandbox-cache") for folder, _, names in os.walk(top)
           for name in names),
    open(os.environ["TORCH_HOME"] + "/hub/checkpoints/w.pth").read(),
]
"""
    told = []
    first = GivenFiles(
        {"corpus.txt": given.files["corpus.txt"]}, {"torch/hub/checkpoints/w.pth": "corpus.txt"}
    )
    second = GivenFiles({"tiny.pth": given.files["tiny.pth"]}, {"torch/hub/checkpoints/w.pth": "tiny.pth"})
    with start_host(given=first) as one, start_host(given=second) as other:
        for running in (one, other, one):
            with running.spawn(ProcessLimits(memory_mb=200, file_mb=4)) as child:
                told.append(answer(child, found)["value"])
    assert told[0] == told[2]
    assert [told[0][1], told[1][1]] == [
        path.read_text() for path in (given.files["corpus.txt"], given.files["tiny.pth"])
    ]
    assert told[0][0] == ["./corpus.txt", "/sandbox-cache/torch/hub/checkpoints/w.pth"]
    assert told[1][0] == ["./tiny.pth", "/sandbox-cache/torch/hub/checkpoints/w.pth"]


def test_a_cache_of_links_cannot_be_added_to_and_goes_without_what_it_links(
    given: GivenFiles, tmp_path: Path
) -> None:
    from grader.sandbox.readable_files import lay_out_cache, remove_cache

    cache = tmp_path / "cache"
    places = {PLACE: "tiny.pth", "huggingface/owner/net/model.safetensors": "gone.bin"}
    lay_out_cache(GivenFiles({**given.files, "gone.bin": tmp_path / "gone.bin"}, places), cache)
    assert (cache / PLACE).read_bytes() == given.files["tiny.pth"].read_bytes()
    assert not any(path.is_file() for path in cache.rglob("*.safetensors"))
    mode = given.files["tiny.pth"].stat().st_mode
    for path in (cache, *(each for each in cache.rglob("*") if each.is_dir())):
        assert path.stat().st_mode & 0o222 == 0
    remove_cache(cache)
    remove_cache(cache)
    assert not cache.exists() and given.files["tiny.pth"].stat().st_mode == mode
