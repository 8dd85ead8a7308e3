"""Users of this machine, made for a test: as whom the workers of other machines would run."""

import contextlib
import itertools
import os
import pwd
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.loopback_servers import kill

# by these a user that a killed test left is known
COMMENT = "grader tests of process "
FOLDER = "/tmp/grader-nodes-"
_numbers = itertools.count(1)


@dataclass(frozen=True)
class NodeUser:
    """A user without a password, whose home nobody else reads."""

    name: str
    uid: int
    gid: int
    home: Path


@contextlib.contextmanager
def node_users(count: int) -> Iterator[tuple[NodeUser, ...]]:
    """New users, who are gone at the end, with all of their processes and files at home.

    Skips the test where this process may not make users.

    Args:
        count: How many.
    """
    if os.geteuid() != 0:
        pytest.skip("only root can make users")
    _remove_left_users()
    homes = Path(tempfile.mkdtemp(prefix=Path(FOLDER).name, dir=Path(FOLDER).parent))
    homes.chmod(0o711)
    users: list[NodeUser] = []
    try:
        users += (_new_user(f"grader-node-{os.getpid()}-{next(_numbers)}", homes) for _ in range(count))
        yield tuple(users)
    finally:
        for user in users:
            _remove(user.name, user.uid)
        shutil.rmtree(homes)


def end_processes_of(user: NodeUser) -> None:
    """Kill all that a user runs."""
    _end_processes_of(user.uid)


def python_of(user: NodeUser) -> Path:
    """A Python in the user's home that imports what this one imports, as if it had been installed there.

    Where no other user may run the Python of these tests, as under /root, it is the system's of the same
    version. Skips the test if there is none.
    """
    folder = user.home / "python"
    packages = sysconfig.get_path("purelib")
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    if folder.exists():
        return folder / "bin" / "python"
    for base in (getattr(sys, "_base_executable", sys.executable), f"/usr/bin/{version}"):
        if _ran_by(user, base, "-m", "venv", "--without-pip", str(folder)):
            imports = folder / "lib" / version / "site-packages" / "packages_of_tests.pth"
            imports.write_text(f"import site; site.addsitedir({packages!r})\n", encoding="utf-8")
            # where packages look for what they have installed beside their modules
            (folder / "share").symlink_to(Path(sysconfig.get_path("data"), "share"))
            if _ran_by(user, str(folder / "bin" / "python"), "-c", "import grader.domain, numpy"):
                return folder / "bin" / "python"
        shutil.rmtree(folder, ignore_errors=True)
    pytest.skip(f"no other user may run {version} with the packages in {packages}")


def _ran_by(user: NodeUser, *command: str) -> bool:
    """Whether a command succeeds as a user, in the user's home, with nothing of our environment."""
    # not by setpriv, which finds its program with the rights that it then gives up
    try:
        done = subprocess.run(
            command,
            cwd=user.home,
            env={"HOME": str(user.home), "PATH": "/usr/bin:/bin"},
            user=user.uid,
            group=user.gid,
            extra_groups=[],
            capture_output=True,
            timeout=120,
        )
    except OSError:
        return False
    return done.returncode == 0


def _new_user(name: str, homes: Path) -> NodeUser:
    home = homes / name
    # a password that none fits; without `*` the account counts as locked, and SSH refuses it
    options = {"home-dir": home, "comment": f"{COMMENT}{os.getpid()}", "password": "*", "shell": "/bin/sh"}
    words = [f"--{option}={value}" for option, value in options.items()]
    _run("useradd", "--system", "--user-group", "--no-create-home", *words, name)
    entry = pwd.getpwnam(name)
    _remove_files_of(entry.pw_uid)
    home.mkdir(mode=0o700)
    os.chown(home, entry.pw_uid, entry.pw_gid)
    return NodeUser(name, entry.pw_uid, entry.pw_gid, home)


def _remove(name: str, uid: int) -> None:
    _end_processes_of(uid)
    _remove_files_of(uid)
    # --force: an ended process that its parent never asks about would keep the user
    _run("userdel", "--force", name)


def _remove_files_of(uid: int) -> None:
    """Remove what killed processes left: it would be the next user's, who may get the same number."""
    for left in Path("/tmp").iterdir():
        with contextlib.suppress(OSError):
            if left.lstat().st_uid == uid:
                shutil.rmtree(left) if left.is_dir() and not left.is_symlink() else left.unlink()


def _remove_left_users() -> None:
    for entry in pwd.getpwall():
        made_by = re.fullmatch(f"{COMMENT}([0-9]+)", entry.pw_gecos)
        if made_by and not Path("/proc", made_by[1]).exists():
            _remove(entry.pw_name, entry.pw_uid)
            if entry.pw_dir.startswith(FOLDER):
                shutil.rmtree(Path(entry.pw_dir).parent, ignore_errors=True)


def _end_processes_of(uid: int) -> None:
    kill(lambda process: uid in _user_ids(process))


def _user_ids(process: Path) -> set[int]:
    """The real, effective, saved and file system's ids of a process's user."""
    line = next(line for line in (process / "status").read_text().splitlines() if line.startswith("Uid:"))
    return {int(word) for word in line.split()[1:]}


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
