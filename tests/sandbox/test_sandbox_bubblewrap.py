"""Bubblewrap around a host: a second wall that takes nothing away."""

import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from grader.sandbox import ProcessLimits, rootfs
from grader.sandbox import host_client as host_module

LIMITS = ProcessLimits(memory_mb=200)
HERE = Path(__file__).parent


@pytest.fixture
def fresh(monkeypatch):
    """Nothing is known of the machine yet."""
    monkeypatch.setattr(host_module, "_layers_are_lost", threading.Event())


@pytest.fixture
def installed(host, fresh, lacking):
    """Bubblewrap is there, and works beside the other layers."""
    if not rootfs.bubblewrap_version():
        lacking("bubblewrap")


def test_no_layer_is_lost_by_it(host, installed, start_host, answer):
    with host.spawn(LIMITS) as plain, start_host(wrapped=True) as own, own.spawn(LIMITS) as child:
        layers = dict(child.attestation.layers)
        assert layers.pop("bubblewrap") == rootfs.bubblewrap_version()
        assert layers.keys() == plain.attestation.layers.keys()
        assert child.attestation.level == plain.attestation.level
        assert answer(child, "import decimal; value = str(decimal.Decimal(1) / 8)")["value"] == "0.125"


def test_the_host_sees_little(host, installed, start_host, tmp_path):
    secret = HERE / "conftest.py"
    with start_host(wrapped=True, hidden=[HERE.parents[1]]) as own:
        root = Path(f"/proc/{own._pid}/root")
        if not os.access(root, os.X_OK):
            pytest.skip("only root can look into it")
        assert Path(own.address).parent.relative_to("/") and (root / own.address.lstrip("/")).exists()
        assert (root / str(rootfs._engine_folder()).lstrip("/") / "sandbox").is_dir()
        assert not (root / str(HERE.parents[1] / "reference").lstrip("/")).exists()
        assert not (root / "home").exists() and not (root / str(tmp_path).lstrip("/")).exists()
        assert (root / str(secret).lstrip("/")).exists()  # PYTHONPATH names its folder
        assert own._process.poll() is None
        mine, its = (Path(f"/proc/{pid}/ns/net").readlink() for pid in ("self", own._pid))
        assert mine != its


def test_a_host_finds_libraries_by_ldconfig_where_that_is_a_shell_script(host, installed, tmp_path):
    """As on Ubuntu."""
    script = tmp_path / "ldconfig"
    script.write_text('#!/bin/sh\nexec /sbin/ldconfig "$@"\n')
    script.chmod(0o755)
    command = rootfs.in_bubblewrap([str(script), "-p"], folder=tmp_path)
    listed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "libc.so" in listed.stdout, listed.stderr


@pytest.mark.slow
def test_nothing_of_it_stays(host, installed, start_host, answer, traces, left_behind):
    before = traces()
    with start_host(wrapped=True) as own:
        with own.spawn(LIMITS) as running:
            answer(running, "value = 1")
        folder = Path(own.address).parent
    assert not folder.exists()
    with start_host(wrapped=True) as own:
        own.spawn(LIMITS).close()
        own._process.kill()
    assert not left_behind(before)


def test_a_file_that_is_replaced_meanwhile_hurts_nobody(host, installed, start_host, answer):
    shown = Path(sys.prefix, "pyvenv.cfg")
    if not shown.is_file() or not os.access(shown.parent, os.W_OK):
        pytest.skip("there is no environment whose files may be replaced")
    with start_host(wrapped=True) as own:
        fresh = shown.with_name("pyvenv.cfg.new")
        fresh.write_bytes(shown.read_bytes())
        fresh.replace(shown)
        for size in (200, 210):
            with own.spawn(ProcessLimits(memory_mb=size)) as child:
                read = f"value = open({str(shown)!r}).read()"
                assert answer(child, read)["value"] == shown.read_text()
                assert answer(child, f"open({str(shown)!r}, 'a')")["error"] in ("PermissionError", "OSError")


def program(folder: Path, body: str) -> None:
    """A bwrap of our own."""
    path = folder / "bwrap"
    path.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo bubblewrap 0.0 && exit\n{body}\n')
    path.chmod(0o755)


# what follows `--` is the command
BROKEN = {
    "does not run": "echo no user namespaces >&2; exit 1",
    "loses a layer": (
        'while [ "$1" != -- ]; do shift; done; shift\n'
        'exec unshare -m sh -c \'mount -t tmpfs none /sys/fs/cgroup; exec "$@"\' - "$@"'
    ),
}


@pytest.mark.parametrize("how", BROKEN)
def test_one_that_takes_a_layer_away_is_left_out(how, host, fresh, start_host, answer, tmp_path, monkeypatch):
    with host.spawn(LIMITS) as plain:
        expected = plain.attestation.layers.keys()
    if how == "loses a layer" and (os.geteuid() != 0 or "cgroup" not in plain.attestation.layers["memory"]):
        pytest.skip("there is no control group to lose")
    program(tmp_path, BROKEN[how])
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    rootfs.bubblewrap_version.cache_clear()
    try:
        assert shutil.which("bwrap") == str(tmp_path / "bwrap") and rootfs.bubblewrap_version() == "0.0"
        with start_host(wrapped=True) as own, own.spawn(LIMITS) as child:
            assert child.attestation.layers.keys() == expected
            assert answer(child, "value = 1")["value"] == 1
        assert host_module._layers_are_lost.is_set()
    finally:
        rootfs.bubblewrap_version.cache_clear()


def test_what_is_not_installed_is_not_used(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    rootfs.bubblewrap_version.cache_clear()
    try:
        assert rootfs.bubblewrap_version() == ""
    finally:
        rootfs.bubblewrap_version.cache_clear()
