"""Run a command as an ordinary user: `python ordinary_user.py UID COMMAND...` (by root).

The interpreter may lie in a folder that only root may enter (root's home). It is then shown, in a mount
namespace of the command's own, in an enterable folder of the same name.
"""

import os
import sys
import tempfile
from pathlib import Path

from grader.sandbox import libc


def reachable(folder: Path) -> None:
    """Let everybody reach the folder at its own path, in the calling process's mount namespace."""
    closed = [parent for parent in reversed(folder.parents) if not parent.stat().st_mode & 0o001]
    if not closed:
        return
    aside = tempfile.mkdtemp()
    libc.checked("mount", os.fsencode(folder), os.fsencode(aside), None, libc.MS_BIND | libc.MS_REC, None)
    libc.checked("mount", b"tmpfs", os.fsencode(closed[0]), b"tmpfs", 0, b"mode=755")
    folder.mkdir(parents=True)
    libc.checked("mount", os.fsencode(aside), os.fsencode(folder), None, libc.MS_BIND | libc.MS_REC, None)
    libc.checked("umount2", os.fsencode(aside), libc.MNT_DETACH)
    Path(aside).rmdir()


def main() -> None:
    """Become the user and the command."""
    uid, command = int(sys.argv[1]), sys.argv[2:]
    libc.checked("unshare", libc.CLONE_NEWNS)
    libc.checked("mount", b"none", b"/", None, libc.MS_REC | libc.MS_PRIVATE, None)
    for folder in {Path(sys.base_prefix).resolve(), Path(sys.prefix).resolve()}:
        reachable(folder)
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    os.execv(command[0], command)


if __name__ == "__main__":
    main()
