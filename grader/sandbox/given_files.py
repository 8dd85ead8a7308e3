"""Files that every child of a host may read: in its working folder, and where libraries keep downloads."""

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from grader.domain.assignment import Assignment

FILES, CACHE = "files", "cache"


@dataclass(frozen=True)
class GivenFiles:
    """What is given.

    Attributes:
        files: Name in the working folder -> the file.
        cached: Place in the cache (`torch/hub/checkpoints/vit.pth`) -> the name of one of the files.
    """

    files: Mapping[str, Path] = field(default_factory=dict)
    cached: Mapping[str, str] = field(default_factory=dict)


NOTHING = GivenFiles()


def given_files(assignment: Assignment) -> GivenFiles:
    """What an assignment provides."""
    folder = assignment.provided_folder
    return GivenFiles(
        {file.name: folder / file.name for file in assignment.provided},
        {place: file.name for file in assignment.provided for place in file.cached},
    )


def enter(root: Path) -> None:
    """Let the calling process, which is trusted, find what was laid out, as the children of a host do."""
    os.chdir(root / FILES)
    if (cache := cache_in(root)) is not None:
        os.environ.update(cache_environment(cache))


def lay_out(given: GivenFiles, folder: Path) -> Path | None:
    """Copy what is given below a host's own folder: what happens to the originals later changes nothing.

    Args:
        given: What is given.
        folder: The host's.

    Returns:
        The folder with all of it; None where nothing is given.
    """
    if not given.files:
        return None
    root = folder / "given"
    (root / FILES).mkdir(parents=True)
    for name, source in given.files.items():
        shutil.copyfile(source, root / FILES / name)
        (root / FILES / name).chmod(0o444)
    for place, name in given.cached.items():
        target = root / CACHE / place
        target.parent.mkdir(parents=True, exist_ok=True)
        os.link(root / FILES / name, target)
    for path in (root, *(each for each in root.rglob("*") if each.is_dir())):
        path.chmod(0o755)
    return root


def files_in(root: Path) -> list[Path]:
    """The files for the working folder, of what was laid out."""
    return sorted((root / FILES).iterdir())


def cache_in(root: Path) -> Path | None:
    """The cache, of what was laid out; None where there is none."""
    return root / CACHE if (root / CACHE).is_dir() else None


def cache_environment(cache: Path) -> dict[str, str]:
    """What tells libraries to look for downloads there, and to download nothing.

    Args:
        cache: Its folder, as the process sees it.
    """
    return {
        "TORCH_HOME": str(cache / "torch"),
        "HF_HOME": str(cache / "huggingface"),
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
    }
