"""A new root for a process, and bubblewrap as a second wall around a host where it is installed.

A process gets an empty file system in memory with read-only views of what it needs. Code that escapes from it
is in the host's root, which shows little more of the machine than a child sees: the host's own folder, the
processes and the control groups. `readable_files` decides what may be seen.
"""

import functools
import importlib.util
import os
import shutil
import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path

from grader.domain.limits import MEGABYTE
from grader.sandbox import libc
from grader.sandbox.readable_files import Visible, cache_in, files_in, visible

# clusters keep environments in /scratch, so these are names that no machine uses
SCRATCH = Path("/sandbox")
_DISK = Path("/sandbox-disk")
SHARED_MEMORY = _DISK / "shm"
_TEMPORARY = Path("/tmp")
CACHE = Path("/sandbox-cache")  # where libraries find what they would download
# readable to everybody in the new root, so that only Landlock can be what refuses it
LANDLOCK_CANARY = Path("/landlock-canary")
WRITABLE = (SCRATCH, _TEMPORARY, SHARED_MEMORY)
MOST_FILES = 4096
# what a process sees of itself. Not: `smaps`, `pagemap` and `numa_maps`, which count who else has a file's
# page in memory; `maps` and folders, whose entries have numbers that are counted for the whole machine; nor
# the machine's counts in /proc
_OWN_FILES = ("status", "stat", "statm", "limits", "cmdline", "comm")

_READ_ONLY, _NO_SUID, _NO_DEVICES, _NO_EXEC = 1, 2, 4, 8
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000


def enter_new_root(
    plan: Visible, *, mount_point: Path, scratch_mb: int, owner: int, account: int, given: Path | None = None
) -> None:
    """Build the new root in the calling process's own mount namespace and make it the root.

    Args:
        mount_point: An existing empty folder; for others it does not change.
        scratch_mb: What the working folder, /tmp and /dev/shm hold together.
        owner: The uid that these belong to, as the caller numbers uids.
        account: The same uid as the process will number it.
        given: The folder with the files that it may read in its working folder; None if there are none.

    Raises:
        OSError: The machine does not allow it.
    """
    _mount(None, Path("/"), None, libc.MS_REC | libc.MS_PRIVATE)
    _mount("tmpfs", mount_point, "tmpfs", libc.MS_NOSUID, "mode=755,size=4m,nr_inodes=20000")
    # first, because an environment may lie in /tmp
    _add_scratch(mount_point, scratch_mb, owner)
    if given is not None:
        _add_given(mount_point, given)
    _add_readable(plan, mount_point)
    _add_devices(plan, mount_point)
    _add_accounts(mount_point, account)
    _add_proc(plan, mount_point)
    os.chdir(mount_point)
    libc.pivot_root()
    _set_attributes(Path("/"), _READ_ONLY | _NO_SUID | _NO_DEVICES, recursive=False)
    os.chdir(SCRATCH)


def _below(root: Path, path: Path) -> Path:
    return root / path.relative_to("/")


def _mount(source: str | Path | None, target: Path, kind: str | None, flags: int, data: str = "") -> None:
    libc.checked(
        "mount",
        None if source is None else os.fsencode(source),
        os.fsencode(target),
        None if kind is None else kind.encode(),
        flags,
        data.encode() or None,
    )


def _set_attributes(target: Path, attributes: int, *, recursive: bool) -> None:
    """Add mount attributes (read-only, ...) to a mount, and to those below it."""
    flags = _AT_RECURSIVE if recursive else 0
    packed = struct.pack("QQQQ", attributes, 0, 0, 0)
    libc.system_call(libc.SYS_MOUNT_SETATTR, _AT_FDCWD, os.fsencode(target), flags, packed, len(packed))


def _bind(source: Path, root: Path) -> Path:
    """Show the machine's file or folder at its own path in the new root.

    A file that the machine has replaced since the host was wrapped (`ldconfig`, an update) can still be read,
    but no longer be bound: it is copied.
    """
    target = _below(root, source)
    if source.is_dir():
        target.mkdir(parents=True, exist_ok=True)
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch()
    try:
        _mount(source, target, None, libc.MS_BIND | libc.MS_REC)
    except FileNotFoundError:
        if not source.is_file():
            raise
        target.write_bytes(source.read_bytes())
        _mount(target, target, None, libc.MS_BIND)
    return target


def _add_readable(plan: Visible, root: Path) -> None:
    """The read-only views, and empty folders over what is hidden; outer ones first."""
    masks = set(plan.hidden)
    for path in sorted((*plan.readable, *plan.hidden)):
        if path in masks:
            _mount("tmpfs", _below(root, path), "tmpfs", libc.MS_NOSUID, "mode=755,size=1m,nr_inodes=100")
        else:
            target = _bind(path, root)
            _set_attributes(target, _READ_ONLY | _NO_SUID | _NO_DEVICES, recursive=path.is_dir())
    for path in plan.hidden:
        _set_attributes(_below(root, path), _READ_ONLY | _NO_SUID | _NO_DEVICES, recursive=False)


def _add_proc(plan: Visible, root: Path) -> None:
    """Show the process's own files in /proc, without its descriptors, and the facts; or all of /proc."""
    proc = _below(root, Path("/proc"))
    proc.mkdir()
    flags = libc.MS_NOSUID | libc.MS_NODEV | libc.MS_NOEXEC
    _mount("proc", proc, "proc", flags)
    if plan.whole_proc:
        return
    shown = _below(root, Path("/proc-shown"))
    shown_self = shown / "self"
    shown_self.mkdir(parents=True)
    for name in _OWN_FILES:
        source, target = proc / "self" / name, shown_self / name
        target.touch()
        _mount(source, target, None, libc.MS_BIND)
    for path, text in plan.facts:
        (shown / path.relative_to("/proc")).write_bytes(text)
    (shown / str(os.getpid())).symlink_to("self")
    # each bound file keeps its process
    libc.checked("umount2", os.fsencode(proc), libc.MNT_DETACH)
    proc.rmdir()
    shown.rename(proc)


def _add_devices(plan: Visible, root: Path) -> None:
    for node in plan.devices:
        # it can still be written to; only its dates, which others see, cannot be set
        _set_attributes(_bind(node, root), _READ_ONLY | _NO_SUID | _NO_EXEC, recursive=False)
    for name, goal in (("fd", "fd"), ("stdout", "fd/1"), ("stderr", "fd/2")) if plan.whole_proc else ():
        (root / "dev" / name).symlink_to(Path("/proc/self", goal))


def _add_scratch(root: Path, scratch_mb: int, owner: int) -> None:
    """The working folder, /tmp and /dev/shm, all within one file system, so that one size bounds them."""
    disk = _below(root, _DISK)
    disk.mkdir()
    options = f"mode=755,size={scratch_mb * MEGABYTE},nr_inodes={MOST_FILES}"
    _mount("tmpfs", disk, "tmpfs", libc.MS_NOSUID | libc.MS_NODEV | libc.MS_NOEXEC, options)
    for path in (SCRATCH, _TEMPORARY, SHARED_MEMORY):
        folder = disk / path.name
        folder.mkdir(mode=0o700)
        os.chown(folder, owner, -1)
    for path in (SCRATCH, _TEMPORARY):
        target = _below(root, path)
        target.mkdir()
        _mount(disk / path.name, target, None, libc.MS_BIND)
    (root / "dev").mkdir()
    (root / "dev" / "shm").symlink_to(SHARED_MEMORY)


def _add_given(root: Path, given: Path) -> None:
    """Read-only views of files in the working folder, which it can neither write, rename nor remove."""
    flags = _READ_ONLY | _NO_SUID | _NO_DEVICES | _NO_EXEC
    views = [(path, _below(root, SCRATCH) / path.name) for path in files_in(given)]
    for source, target in views:
        target.touch()
        _mount(source, target, None, libc.MS_BIND)
        _set_attributes(target, flags, recursive=False)
    target = _below(root, CACHE)
    target.mkdir()
    _mount(cache_in(given), target, None, libc.MS_BIND)
    _set_attributes(target, flags, recursive=False)


def _add_accounts(root: Path, uid: int) -> None:
    """Write the few files that libraries look for: an account for the uid, a host name, and a canary."""
    etc = root / "etc"
    etc.mkdir(exist_ok=True)
    (etc / "passwd").write_text(f"student:x:{uid}:{uid}::{SCRATCH}:/bin/false\n")
    (etc / "group").write_text(f"student:x:{uid}:\n")
    (etc / "nsswitch.conf").write_text("passwd: files\ngroup: files\nhosts: files\n")
    (etc / "hosts").write_text("127.0.0.1 localhost grader\n")
    canary = _below(root, LANDLOCK_CANARY)
    canary.write_text("visible\n")
    canary.chmod(0o644)


# --- bubblewrap ------------------------------------------------------------------------------------------


# the host looks up its user, and finds libseccomp with ldconfig, which is a shell script on Ubuntu
_ALSO_READABLE = (
    *("/etc/passwd", "/etc/group", "/etc/nsswitch.conf"),
    *("/sbin/ldconfig", "/sbin/ldconfig.real", "/bin/sh"),
)
_CONTROL_GROUPS = Path("/sys/fs/cgroup")


@functools.cache
def bubblewrap_version() -> str:
    """The version of bubblewrap on this machine; empty if there is none."""
    program = shutil.which("bwrap")
    if program is None:
        return ""
    completed = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    return completed.stdout.strip().rpartition(" ")[2] if completed.returncode == 0 else ""


def in_bubblewrap(
    command: Sequence[str], *, folder: Path, hidden: Sequence[Path] = (), modules: Sequence[Path] = ()
) -> list[str]:
    """The command of a host, with bubblewrap around it.

    The host stays in the machine's PID namespace: it makes one of its own, and control groups are named after
    its pid.

    Args:
        folder: The host's own, which it may write to.
        hidden: Folders that nothing inside may see.
        modules: Folders of Python modules that the host imports beside the installed packages.
    """
    sees = visible(hidden, gpu=True)
    masks = set(sees.hidden)
    arguments = [shutil.which("bwrap") or "bwrap", "--die-with-parent", "--new-session"]
    arguments += ["--unshare-net", "--unshare-ipc", "--unshare-uts"]
    if os.geteuid() == 0:
        # for its children's namespaces and users; each of them gives all of it up
        arguments += ["--cap-add", "ALL"]
    engine = _engine_folder()
    for path in sorted((*sees.readable, *sees.hidden)):
        if path in masks:
            arguments += [] if path == engine else ["--tmpfs", str(path)]
        else:
            arguments += ["--ro-bind", str(path), str(path)]
    for path in (engine, *modules, *map(Path, _ALSO_READABLE)):
        arguments += ["--ro-bind-try", str(path), str(path)]
    arguments += ["--dev", "/dev"]
    for node in sees.devices:
        arguments += ["--dev-bind-try", str(node), str(node)]
    for writable in (Path("/proc"), _CONTROL_GROUPS, folder):
        arguments += ["--bind-try", str(writable), str(writable)]
    return [*arguments, "--remount-ro", "/", "--", *command]


def _engine_folder() -> Path:
    """The folder of this package."""
    spec = importlib.util.find_spec("grader")
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parent
