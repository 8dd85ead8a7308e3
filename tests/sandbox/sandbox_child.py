"""The host module of these tests: its children run whatever statements they are sent."""

import json
import os
from typing import Any, BinaryIO

from grader.sandbox import forked_child, forkserver, kernel_filters, lockdown, rootfs
from grader.sandbox.libc import CLONE_NEWNET, PR_SET_NO_NEW_PRIVS, checked, prctl
from grader.sandbox.lockdown import Confinement, Layer, Lockdown


def child(reader: BinaryIO, writer: BinaryIO) -> None:
    """Execute each request (a JSON line with `code`); reply with its variable `value` or its exception."""
    for line in reader:
        scope: dict[str, Any] = {}
        try:
            exec(json.loads(line)["code"], scope)  # noqa: S102
            reply = {"value": scope.get("value")}
        except Exception as error:  # noqa: BLE001
            reply = {
                "error": type(error).__name__,
                "errno": getattr(error, "errno", None),
                "text": str(error),
            }
        writer.write(json.dumps(reply, default=repr).encode() + b"\n")
        writer.flush()


def _nothing(*_args: object, **_options: object) -> None:
    return None


def _confine_badly(confinement: Confinement) -> dict[str, str]:
    """Lock down with the step sabotaged that the limit on open files names."""
    number = confinement.limits.open_files - FIRST_SABOTAGE
    if number >= 0:
        _sabotage(SABOTAGES[number])
    return lockdown.confine(confinement)


# one host serves all these tests: the patches are made in the child, which is a copy
FIRST_SABOTAGE = 1000
SABOTAGES = (
    "landlock",
    "seccomp",
    "network",
    "capabilities",
    "bounding",
    "no_new_privs",
    "limits",
    "root",
    "descriptors",
    "exception",
    "death",
    "unreadable",
)


def _sabotage(step: str) -> None:
    """Make one step do nothing while it still says that it did."""
    match step:
        case "landlock":
            kernel_filters.enter_landlock = os.close
        case "seccomp":
            kernel_filters.load_syscall_filter = _nothing
        case "network":
            real = lockdown.leave_shared_namespaces

            def but_network() -> None:
                here = os.open("/proc/self/ns/net", os.O_RDONLY)
                real()
                checked("setns", here, CLONE_NEWNET)
                os.close(here)

            lockdown.leave_shared_namespaces = but_network
        case "capabilities":
            kernel_filters.drop_all = lambda: prctl(PR_SET_NO_NEW_PRIVS, 1)
            lockdown.become_user = _nothing
        case "bounding":
            kernel_filters.drop_bounding_set = _nothing
        case "no_new_privs":
            kernel_filters.drop_all = _nothing
            lockdown.enter_user_namespace = _nothing
        case "limits":
            lockdown.apply_limits = _nothing
        case "root":
            rootfs.enter_new_root = _nothing
            rootfs.SCRATCH = rootfs.Path("/tmp")
        case "descriptors":
            os.dup2(0, 50)
        case "exception":
            rootfs.enter_new_root = None
        case "death":
            rootfs.enter_new_root = lambda *_a, **_k: os._exit(0)
        case "unreadable":
            real_mode = rootfs._add_accounts

            def hide_python(root: Any, uid: int) -> None:
                real_mode(root, uid)
                target = root / os.__file__.lstrip("/")
                checked("mount", b"/dev/null", os.fsencode(target), None, 0x1000, None)
                checked("mount", b"tmpfs", os.fsencode(target.parent), b"tmpfs", 0, b"mode=700")

            rootfs._add_accounts = hide_python


def prepare() -> None:
    """Let requests name a step that is to be sabotaged."""
    forked_child.confine = _confine_badly
    if os.environ.get("NEVER_READY"):
        paths = "\n\t".join(f"/usr/share/templates/{number}" for number in range(400))
        raise RuntimeError(f"this host never becomes ready, as it misses one of\n\t{paths}")


def main() -> None:
    """Serve with the layers that the environment names, all by default."""
    chosen = os.environ.get("LAYERS")
    if chosen == "trusted":
        planned = Lockdown.NONE
    elif chosen is None:
        planned = Lockdown.FULL
    else:
        planned = Lockdown(frozenset(Layer(name) for name in chosen.split(",") if name))
    forkserver.main(child, prepare, planned)


if __name__ == "__main__":
    main()
