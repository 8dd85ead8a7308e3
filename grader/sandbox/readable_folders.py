"""Which of the machine's folders a locked-down process may read: Python, its packages, libraries, fonts."""

import os
import site
import sys
import sysconfig
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

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
