"""The machines that tests reach by SSH let in one user each, by one key, and leave nothing behind."""

import pwd
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest

import grader
from tests.loopback_servers import listens, living, wait_until
from tests.node_users import node_users, python_of
from tests.real_sshd import SshNodes, new_key
from tests.real_sshd import ssh_nodes as running_nodes

pytestmark = pytest.mark.service
ROOT = Path(__file__).parents[2]


def test_each_machine_runs_commands_as_its_own_user(ssh_nodes: SshNodes) -> None:
    assert [node.address for node in ssh_nodes.nodes] == [f"127.0.0.{last}" for last in (2, 3, 4, 5)]
    told = [ssh_nodes.run(node.name, "id -un; pwd; echo $SSH_CONNECTION") for node in ssh_nodes.nodes]
    for node, done in zip(ssh_nodes.nodes, told, strict=True):
        assert done.returncode == 0, done.stderr
        user, home, connection = done.stdout.splitlines()
        assert (user, home) == (node.user.name, str(node.user.home))
        assert connection.split()[2:] == [node.address, str(node.port)]
    assert len({done.stdout for done in told}) == 4


def test_its_user_reads_no_private_folder(ssh_nodes: SshNodes, tmp_path: Path) -> None:
    """Neither those of tests, nor the servers', nor another user's."""
    (tmp_path / "secret").write_text("secret", encoding="utf-8")
    first, second = ssh_nodes.nodes[:2]
    (first.user.home / "own").write_text("own", encoding="utf-8")
    for path in (tmp_path / "secret", ssh_nodes.key, ssh_nodes.config, first.user.home / "own"):
        done = ssh_nodes.run(second.name, f"cat {path}")
        assert done.returncode != 0
        assert "Permission denied" in done.stderr
    assert ssh_nodes.run(first.name, f"ls {first.user.home}").stdout == "own\n"


def test_its_user_runs_this_course_s_grader(ssh_nodes: SshNodes) -> None:
    user = ssh_nodes.nodes[0].user
    done = ssh_nodes.run("node1", f"{python_of(user)} -c 'import grader; print(grader.__version__)'")
    assert done.stdout == f"{grader.__version__}\n", done.stderr
    assert python_of(user) == user.home / "python" / "bin" / "python"


def test_a_foreign_key_is_refused(ssh_nodes: SshNodes, tmp_path: Path) -> None:
    """Only for not being the one: the same client gets in once the machine's user accepts its key."""
    public = new_key(tmp_path / "foreign.key")
    config = ssh_nodes.config.read_text(encoding="utf-8")
    stranger = replace(ssh_nodes, home=tmp_path)
    stranger.config.write_text(
        config.replace(str(ssh_nodes.key), str(tmp_path / "foreign.key")), encoding="utf-8"
    )
    refused = stranger.run("node1", "id")
    assert refused.returncode == 255
    assert "Permission denied (publickey)" in refused.stderr
    with (ssh_nodes.nodes[0].user.home / ".ssh" / "authorized_keys").open("a", encoding="utf-8") as accepted:
        accepted.write(public)
    assert stranger.run("node1", "id").returncode == 0
    assert stranger.run("node2", "id").returncode == 255


def test_nobody_but_its_user_gets_in(ssh_nodes: SshNodes) -> None:
    for user in ("root", ssh_nodes.nodes[1].user.name):
        done = ssh_nodes.run("node1", "id", "-l", user)
        assert done.returncode == 255
        assert "Permission denied (publickey)" in done.stderr


def test_each_machine_has_a_key_of_its_own(ssh_nodes: SshNodes, tmp_path: Path) -> None:
    keys = [line.split() for line in ssh_nodes.known_hosts.read_text(encoding="utf-8").splitlines()]
    assert len({key for _, _, key, *_ in keys}) == 4
    swapped = tmp_path / "known_hosts"
    swapped.write_text(f"{keys[0][0]} {' '.join(keys[1][1:])}\n", encoding="utf-8")
    done = ssh_nodes.run("node1", "id", "-o", f"UserKnownHostsFile={swapped}")
    assert done.returncode == 255
    assert "Host key verification failed" in done.stderr


def test_a_machine_that_is_switched_off_is_gone_with_what_it_runs(lacking: Callable[[str], NoReturn]) -> None:
    with running_nodes(lacking, count=2) as nodes:
        gone, stays = nodes.nodes
        sessions = [
            subprocess.Popen(["ssh", "-F", str(nodes.config), node.name, "touch in; exec sleep 300"])
            for node in nodes.nodes
        ]
        wait_until(lambda: all((node.user.home / "in").exists() for node in nodes.nodes), "both are in", 20)
        nodes.switch_off(gone.name)
        assert sessions[0].wait(10) == 255
        assert sessions[1].poll() is None
        assert nodes.run(gone.name, "id").returncode == 255
        assert nodes.run(stays.name, "id -un").stdout == f"{stays.user.name}\n"
    assert sessions[1].wait(10) == 255
    for node in nodes.nodes:
        assert not listens(node.address, node.port)
        assert not node.user.home.parent.exists()
        with pytest.raises(KeyError):
            pwd.getpwnam(node.user.name)
    assert not nodes.home.exists()
    assert not living(lambda process: str(nodes.home).encode() in (process / "cmdline").read_bytes())


def test_users_that_killed_tests_left_are_removed(ssh_nodes: SshNodes) -> None:
    program = (
        "import os, signal; from tests.node_users import node_users\n"
        "with node_users(1) as (user,):\n"
        "    print(user.name, flush=True); os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    name = done.stdout.strip()
    home = Path(pwd.getpwnam(name).pw_dir)
    assert home.exists()
    with node_users(1):
        with pytest.raises(KeyError):
            pwd.getpwnam(name)
        assert not home.parent.exists()
        # those of tests that run are not
        assert all(pwd.getpwnam(node.user.name) for node in ssh_nodes.nodes)
