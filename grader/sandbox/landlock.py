"""Landlock: the kernel refuses every path that is not on a list, and TCP, and signals to others.

The kernel's documentation: https://docs.kernel.org/userspace-api/landlock.html
"""

import os
import struct
from collections.abc import Iterable
from pathlib import Path

from grader.sandbox import libc

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_REMOVE_DIR, _REMOVE_FILE, _MAKE_DIR, _MAKE_REG = 1 << 4, 1 << 5, 1 << 7, 1 << 8
_MAKE_FIFO, _REFER, _TRUNCATE = 1 << 10, 1 << 13, 1 << 14
# rights to files that each version of the interface added
_HANDLED_BITS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
_NET_TCP = 3
_SCOPE_ABSTRACT_SOCKETS_AND_SIGNALS = 3
_FILE_RIGHTS = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE
_READ = _READ_FILE | _READ_DIR
_WRITE = _WRITE_FILE | _TRUNCATE | _REFER | _REMOVE_DIR | _REMOVE_FILE | _MAKE_DIR | _MAKE_REG | _MAKE_FIFO


def interface_version() -> int:
    """The version of Landlock that the kernel offers; 0 without it."""
    try:
        return libc.system_call(libc.SYS_LANDLOCK_CREATE_RULESET, None, 0, 1)
    except OSError:
        return 0


def file_rules(*, readable: Iterable[Path], writable: Iterable[Path], devices: Iterable[Path]) -> int:
    """A descriptor of rules that refuse every file but these.

    Args:
        readable: Folders and files that may be read; `writable` may be changed too, with what is in them.
        devices: Nodes that may be read and written.

    Returns:
        The descriptor, for `enter`.

    Raises:
        OSError: The kernel offers no Landlock.
    """
    version = libc.system_call(libc.SYS_LANDLOCK_CREATE_RULESET, None, 0, 1)
    handled = (1 << _HANDLED_BITS.get(version, 16)) - 1
    net = _NET_TCP if version >= 4 else 0
    scope = _SCOPE_ABSTRACT_SOCKETS_AND_SIGNALS if version >= 6 else 0
    attributes = struct.pack("QQQ", handled, net, scope)
    # an older kernel takes a shorter structure
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    ruleset = libc.system_call(libc.SYS_LANDLOCK_CREATE_RULESET, attributes[:size], size, 0)
    try:
        for path in readable:
            _allow(ruleset, path, _READ & handled)
        for path in writable:
            _allow(ruleset, path, (_READ | _WRITE) & handled)
        for path in devices:
            _allow(ruleset, path, (_READ_FILE | _WRITE_FILE | _TRUNCATE | 1 << 15) & handled)
    except OSError:
        os.close(ruleset)
        raise
    return ruleset


def enter(ruleset: int) -> None:
    """Put the calling process under the rules, for good, and close them. It must have set no_new_privs."""
    libc.system_call(libc.SYS_LANDLOCK_RESTRICT_SELF, ruleset, 0)
    os.close(ruleset)


def _allow(ruleset: int, path: Path, rights: int) -> None:
    """Add a rule for what is at and below the path."""
    opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        if not path.is_dir():
            rights &= _FILE_RIGHTS | 1 << 15
        libc.system_call(libc.SYS_LANDLOCK_ADD_RULE, ruleset, 1, struct.pack("=Qi", rights, opened), 0)
    finally:
        os.close(opened)
