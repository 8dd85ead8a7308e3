"""Run a command as root of a container has it: `python in_container.py [--without seccomp] COMMAND...`

Docker's default: fourteen capabilities, and a filter that forbids namespaces and mounts, to root and to
everybody in a user namespace alike. With `--without`, also an old kernel's lack of a layer. The interpreter
may lie in a folder that only root may enter: it is shown where everybody may.
"""

import errno
import os
import sys
from pathlib import Path

import pyseccomp

from grader.sandbox import libc

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from sandbox.ordinary_user import reachable

# chown, dac_override, fowner, fsetid, kill, setgid, setuid, setpcap, net_bind_service, net_raw, sys_chroot,
# mknod, audit_write, setfcap
_DOCKERS = {0, 1, 3, 4, 5, 6, 7, 8, 10, 13, 18, 27, 29, 31}
_NAMESPACES = 0x7E020080  # CLONE_NEWNS, _NEWCGROUP, _NEWUTS, _NEWIPC, _NEWUSER, _NEWPID, _NEWNET
_PR_SET_SECCOMP = 22


def _forbid_namespaces(without: set[str]) -> None:
    rules = pyseccomp.SyscallFilter(pyseccomp.ALLOW)
    rules.set_attr(pyseccomp.Attr.CTL_NNP, 0)
    refused = pyseccomp.ERRNO(errno.EPERM)
    for name in (
        "unshare",
        "mount",
        "umount2",
        "pivot_root",
        "setns",
        "mount_setattr",
        "fsopen",
        "open_tree",
    ):
        rules.add_rule(refused, name)
    for bit in (1 << number for number in range(32) if _NAMESPACES >> number & 1):
        rules.add_rule(refused, "clone", pyseccomp.Arg(0, pyseccomp.MASKED_EQ, bit, bit))
    rules.add_rule(pyseccomp.ERRNO(errno.ENOSYS), "clone3")
    if "landlock" in without:
        rules.add_rule(pyseccomp.ERRNO(errno.ENOSYS), "landlock_create_ruleset")
    if "seccomp" in without:
        rules.add_rule(pyseccomp.ERRNO(errno.ENOSYS), "seccomp")
        rules.add_rule(refused, "prctl", pyseccomp.Arg(0, pyseccomp.EQ, _PR_SET_SECCOMP))
    rules.load()


def main() -> None:
    """Become the command."""
    arguments, without = sys.argv[1:], set()
    if arguments[0] == "--without":
        without = set(arguments[1].split(","))
        arguments = arguments[2:]
    libc.checked("unshare", libc.CLONE_NEWNS)
    libc.checked("mount", b"none", b"/", None, libc.MS_REC | libc.MS_PRIVATE, None)
    for folder in {Path(sys.base_prefix).resolve(), Path(sys.prefix).resolve()}:
        reachable(folder)
    # Debian's and Ubuntu's containers have no control groups that could be written to
    libc.checked("mount", b"tmpfs", b"/sys/fs/cgroup", b"tmpfs", 1, b"mode=755")
    _forbid_namespaces(without)
    for capability in range(41):
        if capability not in _DOCKERS:
            libc.prctl(libc.PR_CAPBSET_DROP, capability)
    os.execv(arguments[0], arguments)


if __name__ == "__main__":
    main()
