"""Bubblewrap around a host: a second wall, where it is installed.

What gets out of a child's own root finds itself in the host's, which shows little more of the machine than a
child sees: the host's own folder, the processes and the control groups.
"""

import functools
import importlib.util
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from grader.sandbox.readable_folders import visible

# the host looks up its user, and finds libseccomp with ldconfig
_ALSO_READABLE = ("/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/sbin/ldconfig", "/sbin/ldconfig.real")
_CONTROL_GROUPS = Path("/sys/fs/cgroup")


@functools.cache
def installed() -> str:
    """The version of bubblewrap on this machine; empty when there is none."""
    program = shutil.which("bwrap")
    if program is None:
        return ""
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    return done.stdout.strip().rpartition(" ")[2] if done.returncode == 0 else ""


def wrapped(
    command: Sequence[str], *, folder: Path, hidden: Sequence[Path] = (), modules: Sequence[Path] = ()
) -> list[str]:
    """The command of a host, with bubblewrap around it.

    The host stays in the machine's PID namespace: it makes one of its own, and control groups are named after
    its pid.

    Args:
        folder: The host's own, which it may write to.
        hidden: Folders that nothing within may see.
        modules: Folders of Python modules that the host imports beside the installed packages.
    """
    sees = visible(hidden, gpu=True)
    masks = set(sees.hidden)
    arguments = [shutil.which("bwrap") or "bwrap", "--die-with-parent", "--new-session"]
    arguments += ["--unshare-net", "--unshare-ipc", "--unshare-uts"]
    if os.geteuid() == 0:
        # for its children's namespaces and users; each of them gives all of it up
        arguments += ["--cap-add", "ALL"]
    engine = _engine()
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


def _engine() -> Path:
    """The folder of this package."""
    found = importlib.util.find_spec("grader")
    assert found is not None and found.origin is not None
    return Path(found.origin).parent
