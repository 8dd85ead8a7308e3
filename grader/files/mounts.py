"""Which file system a path lies on, where the system says so."""

import re
from pathlib import Path

_MOUNTS = Path("/proc/self/mountinfo")  # Linux
# fmt: off
_NETWORK = frozenset((
    "nfs", "nfs4", "cifs", "smb3", "smbfs", "ncpfs", "afs", "9p", "ceph", "coda", "ocfs2", "gfs2", "lustre",
    "gpfs", "beegfs", "orangefs", "pvfs2",
))
# fmt: on
_OVER_NETWORK = ("fuse.sshfs", "fuse.glusterfs", "fuse.ceph", "fuse.s3fs", "fuse.rclone", "fuse.davfs")


def network_file_system(path: Path, mounts: str | None = None) -> str:
    """The kind of the network file system that a path lies on; empty: a disk of this machine, or unknown.

    Args:
        path: It need not exist yet.
        mounts: The text of `/proc/self/mountinfo`; None: it is read.
    """
    if mounts is None:
        try:
            mounts = _MOUNTS.read_text(encoding="utf-8", errors="surrogateescape")
        except OSError:
            return ""
    place = path.resolve()
    longest, kind = -1, ""
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        fields, kinds = before.split(" "), after.split(" ")
        if len(fields) < 5 or not kinds[0]:
            continue
        # a space or a backslash in a path is written as an octal number
        point = Path(re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), fields[4]))
        # of mounts at the same place, the last one is seen
        if place.is_relative_to(point) and len(point.parts) >= longest:
            longest, kind = len(point.parts), kinds[0]
    return kind if kind in _NETWORK or kind.startswith(_OVER_NETWORK) else ""
