"""What a locked-down process may read: folders of the machine, and files that its host gives to every child.

The machine's are Python, its packages, libraries, fonts and devices of a GPU. Given files lie in
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

from grader.domain.assignment import Assignment
from grader.domain.assignment_files import HUB

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
# what never changes about the CPUs; how busy they are is beside it
_PROCESSORS = Path("/sys/devices/system/cpu")
_OF_PROCESSORS = (
    "online",
    "possible",
    "present",
    "kernel_max",
    "cpu[0-9]*/topology",
    "cpu[0-9]*/cache",
)
# only these parts of a prefix: an environment may have been made in the folder of a course
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
_DEV = Path("/dev")
# the latter are for the parts of a GPU that is divided (MIG)
_GPU_NODES = ("nvidia*", "nvidia-caps/nvidia-cap*")
# by which the operator says which of the machine's GPUs is used, and in which order they are numbered
GPU_CHOICE = ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER")
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
# of /proc as it was when the host began: later counts would reveal what others do. A child is a copy of its
# host, so its memory has the host's layout
_FACTS = tuple(Path("/proc", name) for name in ("cpuinfo", "meminfo", "stat", "version", "self/maps"))
_MOST_FACTS = 500_000  # bytes of each


@dataclass(frozen=True)
class Visible:
    """Which of the machine's files a process sees.

    Attributes:
        readable: Folders and files, bound read-only at their own paths; parents before children.
        hidden: Folders that lie below a readable one and are shown empty.
        devices: Device nodes, readable and writable.
        facts: Files of /proc and their content for it, which never changes.
        whole_proc: It sees all of its /proc instead.
    """

    readable: tuple[Path, ...]
    hidden: tuple[Path, ...]
    devices: tuple[Path, ...]
    facts: tuple[tuple[Path, bytes], ...] = ()
    whole_proc: bool = False


def visible(hidden: Iterable[Path] = (), *, gpu: bool = False) -> Visible:
    """Which files a locked-down process on this machine sees.

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
        nodes = [node for pattern in _GPU_NODES for node in _DEV.glob(pattern)]
        devices += sorted(node for node in nodes if node.is_char_device())
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
# where libraries look: without these folders they would try to make them, and fail
_FOLDERS = ("torch/hub/checkpoints", "huggingface/hub")
_REVISION = "provided"  # the name of the only revision of provided files of the Hugging Face hub

# nobody listens there, and every system reports that at once
_NO_PROXY = "http://127.0.0.1:0"
_PROXIES = {
    name: value
    for lower, value in (
        *((f"{kind}_proxy", _NO_PROXY) for kind in ("http", "https", "ftp", "all")),
        ("no_proxy", ""),
    )
    for name in (lower, lower.upper())
}
# tells libraries that there is no network, so that they fail at once, and everywhere alike
OFFLINE: Mapping[str, str] = {
    "HF_HUB_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    **_PROXIES,
}


@dataclass(frozen=True)
class GivenFiles:
    """The files that a host gives to its children.

    Attributes:
        files: Name in the working folder -> the file.
        cached: Place in the cache (`torch/hub/checkpoints/vit.pth`, `huggingface/OWNER/NAME/FILE`) -> the
            name of one of the files.
    """

    files: Mapping[str, Path] = field(default_factory=dict)
    cached: Mapping[str, str] = field(default_factory=dict)


NOTHING = GivenFiles()


def given_files(assignment: Assignment) -> GivenFiles:
    """The files that an assignment provides."""
    folder = assignment.provided_folder
    return GivenFiles(
        {file.name: folder / file.name for file in assignment.provided},
        {place: file.name for file in assignment.provided for place in file.cached},
    )


def enter_folders(root: Path) -> None:
    """Let the calling process, which is trusted, find the given files, as the children of a host do."""
    os.chdir(root / FILES)
    os.environ.update(cache_environment(cache_in(root)))


def lay_out(given: GivenFiles, folder: Path) -> Path | None:
    """Copy the given files into a host's own folder, so that later changes of the originals have no effect.

    Args:
        given: What is given.
        folder: The host's.

    Returns:
        The folder with all of it; None if nothing is given.
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
    """Make a cache of links to the given files, with read-only folders: for a student's own machine.

    Args:
        given: The files; a missing one is not found in the cache.
        cache: Its folder, which is made.
    """
    _lay_out_cache(cache, {place: given.files[name].resolve() for place, name in given.cached.items()}, _link)
    for path in _folders_in(cache):
        path.chmod(0o555)


def remove_cache(cache: Path) -> None:
    """Remove the cache that `lay_out_cache` made, if there is one, without the targets of its links."""
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
    """Link a file, or copy it if the system does not support links."""
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
    """Where a library looks for the file with this place."""
    if not _is_short(place):
        return place
    return "/".join((_repository_of(place), "snapshots", _REVISION, *place.split("/")[3:]))


def files_in(root: Path) -> list[Path]:
    """The laid-out files for the working folder."""
    return sorted((root / FILES).iterdir())


def cache_in(root: Path) -> Path:
    """The laid-out cache."""
    return root / CACHE


def cache_environment(cache: Path) -> dict[str, str]:
    """The variables that make libraries look for downloads there, and download nothing.

    Args:
        cache: Its folder, as the process sees it.
    """
    hub = cache / HUB
    return {
        **OFFLINE,
        "TORCH_HOME": str(cache / "torch"),
        "HF_HOME": str(hub),
        "HF_HUB_CACHE": str(hub / "hub"),  # a student's machine may set it, and it takes precedence
    }
