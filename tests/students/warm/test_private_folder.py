"""The folder in which warm processes are found."""

import os
import subprocess
import sys

import pytest

from grader.students.warm.address import Lock, checked_folder, names_in, private_folder

modes = pytest.mark.skipif(sys.platform == "win32", reason="it has no such modes")


@modes
def test_it_is_the_users_alone_whatever_the_mask(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    before = os.umask(0)
    try:
        folder = private_folder()
    finally:
        os.umask(before)
    assert folder.is_relative_to(tmp_path) and folder.stat().st_mode & 0o777 == 0o700
    assert private_folder() == folder


@modes
@pytest.mark.parametrize("what", ["link", "file", "open to others", "somebody else's"])
def test_what_is_not_the_users_own_is_refused(tmp_path, monkeypatch, what):
    folder = tmp_path / "warm"
    if what == "link":
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        folder.symlink_to(tmp_path / "elsewhere")
    elif what == "file":
        folder.write_text("")
    else:
        folder.mkdir(mode=0o700)
        assert checked_folder(folder) == folder
    if what == "open to others":
        folder.chmod(0o750)
    if what == "somebody else's":
        monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(PermissionError):
        checked_folder(folder)


def test_the_cache_takes_its_place_where_the_system_has_none(tmp_path, monkeypatch):
    monkeypatch.setenv("GRADER_CACHE", str(tmp_path / "cache"))
    for runtime in ("", "relative", str(tmp_path / "gone")):
        monkeypatch.setenv("XDG_RUNTIME_DIR", runtime)
        assert private_folder().is_relative_to(tmp_path / "cache")


@pytest.mark.skipif(sys.platform == "win32", reason="it knows a home by other means")
def test_who_has_no_place_of_their_own_has_none(tmp_path, monkeypatch):
    for name in ("XDG_RUNTIME_DIR", "XDG_CACHE_HOME", "GRADER_CACHE"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "no folder").write_text("")
    monkeypatch.setenv("HOME", str(tmp_path / "no folder"))
    with pytest.raises(OSError):
        private_folder()


def test_a_lock_is_one_processs_until_it_ends(tmp_path):
    path = tmp_path / "a.lock"
    lock = Lock(path)
    assert not lock.is_held() and not path.exists()
    script = f"""
from pathlib import Path
from grader.students.warm.address import Lock
lock = Lock(Path({str(path)!r}))
print(lock.taken(), flush=True)
input()
"""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    holder = subprocess.Popen([sys.executable, "-c", script], **pipes, text=True)
    with holder:
        assert holder.stdout is not None and holder.stdout.readline() == "True\n"
        assert lock.is_held() and not lock.taken()
        holder.kill()
    assert not lock.is_held() and lock.taken() and Lock(path).is_held()
    lock.release()
    assert not Lock(path).is_held() and list(names_in(tmp_path)) == ["a"]
