"""What a locked-down process may read: folders of the machine, and files that its host gives to every child.

Of the machine these are Python, its packages, libraries, fonts and devices of a GPU. Given files lie in
the child's working folder, and where libraries keep their downloads; variables tell the libraries that
they are offline. `rootfs`, `kernel_filters` and `lockdown` make it so; the assignment decides which files
are given.
"""

import os
import shutil
import site
import sys
import sysconfig
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from grader.domain.assignment import HUB, Assignment

# /usr as a whole is not given: images keep applications in /usr/src
_SYSTEM = (
    "/lib",
    "/lib32",
    "/lib64",
    "/usr/lib",
    "/usr/lib32",
    "/usr/lib64",
    "/usr/bin",
    "/usr/share",
    "/usr/local/lib",
    "/usr/local/lib64",
    "/usr/local/share",
    "/nix/store",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/alternatives",
    "/etc/fonts",
    "/etc/localtime",
)
# what never changes of the processors; beside it stands how busy they are
_PROCESSORS = Path("/sys/devices/system/cpu")
_OF_PROCESSORS = (
    "online",
    "possible",
    "present",
    "kernel_max",
    "cpu[0-9]*/topology",
    "cpu[0-9]*/cache",
)
# of a prefix only these: an environment may have been made in the folder of a course
_PREFIX_PARTS = ("bin", "lib", "lib64", "share", "etc", "ssl", "pyvenv.cfg")
_GPU = (
    "/usr/local/nvidia",
    "/usr/local/cuda",
    "/etc/OpenCL",
    "/sys/devices",
    "/sys/bus/pci",
    "/sys/class/drm",
    "/sys/module/nvidia",
    "/sys/module/nvidia_uvm",
)
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
# of /proc as it was when the host began: what is counted later would tell what others do. A child is a copy
# of its host, so the host's memory is laid out as its own
_FACTS = tuple(Path("/proc", name) for name in ("cpuinfo", "meminfo", "stat", "version", "self/maps"))
_MOST_FACTS = 500_000  # bytes of each


@dataclass(frozen=True)
class Visible:
    """What of the machine's files a process sees.

    Attributes:
        readable: Folders and files, bound read-only at their own paths; parents before children.
        hidden: Folders that lie below a readable one and are shown empty.
        devices: Device nodes, readable and writable.
        facts: Files of /proc and what they say to it, always the same.
        whole_proc: It sees all of its /proc instead.
    """

    readable: tuple[Path, ...]
    hidden: tuple[Path, ...]
    devices: tuple[Path, ...]
    facts: tuple[tuple[Path, bytes], ...] = ()
    whole_proc: bool = False


def visible(hidden: Iterable[Path] = (), *, gpu: bool = False) -> Visible:
    """What a locked-down process on this machine sees.

    Args:
        hidden: Folders that it must not see wherever they lie: the course, the submissions, the results.
            What Python needs and lies within them (`course/.venv/lib`) stays.
        gpu: It may use the GPU.
    """
    wanted = [Path(name) for name in (*_SYSTEM, *(_GPU if gpu else ()))]
    wanted += [path for pattern in _OF_PROCESSORS for path in _PROCESSORS.glob(pattern)]
    for prefix in {sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix}:
        if prefix not in ("/", "/usr", "/usr/local"):
            wanted += [Path(prefix, part) for part in _PREFIX_PARTS]
    packages = _package_folders()
    wanted += packages
    masks = {Path(os.path.abspath(folder)) for folder in hidden}  # noqa: PTH100 - links stay as they are
    masks |= {folder.resolve() for folder in masks}
    masks |= {package for folder in packages if (package := folder / "grader").is_dir()}
    readable = [path for path in sorted(set(wanted)) if path.exists()]
    devices = [Path(name) for name in DEVICES]
    if gpu:
        devices += sorted(node for node in Path("/dev").glob("nvidia*") if node.is_char_device())
    return Visible(
        tuple(path for path in readable if not _covered(path, readable, masks)),
        tuple(mask for mask in sorted(masks) if mask.is_dir() and _covered(mask, readable, ())),
        tuple(node for node in devices if node.exists()),
        tuple((path, path.read_bytes()[:_MOST_FACTS]) for path in _FACTS if path.exists()),
        whole_proc=gpu,
    )


def _package_folders() -> list[Path]:
    """The folders of installed packages. Other entries of `sys.path` are somebody's source code."""
    folders = {*site.getsitepackages(), sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")}
    if site.ENABLE_USER_SITE:
        folders.add(site.getusersitepackages())
    folders |= {entry for entry in sys.path if Path(entry).name in ("site-packages", "dist-packages")}
    return sorted(Path(folder) for folder in folders)


def _covered(path: Path, readable: Iterable[Path], masks: Iterable[Path]) -> bool:
    """Whether a folder above is readable, with no mask in between."""
    for folder in path.parents:
        if folder in masks:
            return False
        if folder in readable:
            return True
    return False


# --- given files -----------------------------------------------------------------------------------------


FILES, CACHE = "files", "cache"
# where libraries look, so that a cache without such files is an empty one and not one that cannot be made
_FOLDERS = ("torch/hub/checkpoints", "huggingface/hub")
_REVISION = "provided"  # the name of the only revision of what is provided of the Hugging Face hub

# nobody listens there, and every system says so at once
_NO_PROXY = "http://127.0.0.1:0"
_PROXIES = {
    name: value
    for lower, value in (
        *((f"{kind}_proxy", _NO_PROXY) for kind in ("http", "https", "ftp", "all")),
        ("no_proxy", ""),
    )
    for name in (lower, lower.upper())
}
# what tells libraries that there is no network, so that they say so at once, and alike everywhere
OFFLINE: Mapping[str, str] = {
    "HF_HUB_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    **_PROXIES,
}


@dataclass(frozen=True)
class GivenFiles:
    """What is given.

    Attributes:
        files: Name in the working folder -> the file.
        cached: Place in the cache (`torch/hub/checkpoints/vit.pth`, `huggingface/OWNER/NAME/FILE`) -> the
            name of one of the files.
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


def enter_folders(root: Path) -> None:
    """Let the calling process, which is trusted, find what was laid out, as the children of a host do."""
    os.chdir(root / FILES)
    os.environ.update(cache_environment(cache_in(root)))


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
    _lay_out_cache(
        root / CACHE, {place: root / FILES / name for place, name in given.cached.items()}, os.link
    )
    for path in (root, *(entry for entry in root.rglob("*") if entry.is_dir())):
        path.chmod(0o755)
    return root


def lay_out_cache(given: GivenFiles, cache: Path) -> None:
    """Make a cache of links to what is given, whose folders cannot be written: for a student's own machine.

    Args:
        given: In the places of files that are missing nothing is found.
        cache: Its folder, which is made.
    """
    _lay_out_cache(cache, {place: given.files[name].resolve() for place, name in given.cached.items()}, _link)
    for path in _folders_in(cache):
        path.chmod(0o555)


def remove_cache(cache: Path) -> None:
    """Remove what `lay_out_cache` made, if it is there, and nothing that its links lead to."""
    if not cache.is_dir():
        return
    for path in _folders_in(cache):
        path.chmod(0o755)
    shutil.rmtree(cache, ignore_errors=True)


def _folders_in(cache: Path) -> list[Path]:
    return [cache, *(path for path in cache.rglob("*") if path.is_dir() and not path.is_symlink())]


def _lay_out_cache(cache: Path, files: Mapping[str, Path], put: Callable[[Path, Path], None]) -> None:
    for name in _FOLDERS:
        (cache / name).mkdir(parents=True)
    for place, source in files.items():
        target = cache / _path_of(place)
        target.parent.mkdir(parents=True, exist_ok=True)
        put(source, target)
    for place in files:
        names = cache / _repository_of(place) / "refs" / "main"
        if _is_short(place) and not names.exists():
            names.parent.mkdir(parents=True, exist_ok=True)
            names.write_text(_REVISION, encoding="utf-8")


def _link(source: Path, target: Path) -> None:
    """Another name for a file, or a copy where the system has no such names."""
    for way in (os.symlink, os.link):
        try:
            way(source, target)
        except OSError:
            continue
        return
    if source.is_file():
        shutil.copyfile(source, target)


def _is_short(place: str) -> bool:
    """Whether a place names an owner, a repository and a file of the Hugging Face hub, and no more."""
    return place.startswith(f"{HUB}/") and not place.startswith(f"{HUB}/hub/")


def _repository_of(place: str) -> str:
    _, owner, name = place.split("/")[:3]
    return f"{HUB}/hub/models--{owner}--{name}"


def _path_of(place: str) -> str:
    """Where a library looks for what has this place."""
    if not _is_short(place):
        return place
    return "/".join((_repository_of(place), "snapshots", _REVISION, *place.split("/")[3:]))


def files_in(root: Path) -> list[Path]:
    """The files for the working folder, of what was laid out."""
    return sorted((root / FILES).iterdir())


def cache_in(root: Path) -> Path:
    """The cache, of what was laid out."""
    return root / CACHE


def cache_environment(cache: Path) -> dict[str, str]:
    """What tells libraries to look for downloads there, and to download nothing.

    Args:
        cache: Its folder, as the process sees it.
    """
    hub = cache / HUB
    return {
        **OFFLINE,
        "TORCH_HOME": str(cache / "torch"),
        "HF_HOME": str(hub),
        "HF_HUB_CACHE": str(hub / "hub"),  # it may be set on a machine of one's own, and counts more
    }
