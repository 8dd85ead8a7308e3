"""A class graded by machines that are reached by SSH: what fails, what is lost, and what stays behind."""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cluster.small_classes import (
    SECRET,
    Grading,
    SmallClass,
    all_points,
    folders_of,
    grading,
    processes_of,
    processes_that_know,
    small_class,
)
from tests.loopback_servers import living, wait_until
from tests.node_users import python_of
from tests.real_sshd import SshNodes

pytestmark = pytest.mark.service
OTHER_PYTHON = "/usr/bin/python3"  # the system's own, without the grader


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> SmallClass:
    """Eight submissions, two for each machine."""
    return small_class(tmp_path_factory.mktemp("class"), students=8, seconds=2)


@pytest.fixture(scope="module")
def uids(ssh_nodes: SshNodes) -> tuple[int, ...]:
    """The users of all machines."""
    return tuple(node.user.uid for node in ssh_nodes.nodes)


@pytest.fixture(scope="module")
def hosts(ssh_nodes: SshNodes, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A list of the four machines, and of three more that cannot be used."""
    path = tmp_path_factory.mktemp("hosts") / "hosts.txt"
    lines = [f"{node.name} jobs=1 python={python_of(node.user)}" for node in ssh_nodes.nodes]
    lines += ["root@node1  # nobody may log in there so", "no-such-host.invalid"]
    lines += [f"{ssh_nodes.nodes[1].user.name}@node2 python={OTHER_PYTHON}"]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def run(
    ssh_nodes: SshNodes, graded: SmallClass, hosts: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Grading, str]]:
    """A run during which the connection to node1 is cut; and what was amiss when its nodes were at work."""
    environment = {"GRADER_SSH": f"ssh -F {ssh_nodes.config}"}
    uids = tuple(node.user.uid for node in ssh_nodes.nodes)
    with grading(graded, f"ssh:{hosts}", tmp_path_factory.mktemp("run") / "out", environment) as grades:
        grades.wait_for(*(f"{node.name}: ready" for node in ssh_nodes.nodes))
        amiss = known_to_others(uids)
        [connection] = living(is_connection_to("node1", ssh_nodes))
        os.kill(connection, signal.SIGKILL)
        assert grades.wait() == 0, grades.said()
        yield grades, amiss


def is_connection_to(name: str, nodes: SshNodes) -> Callable[[Path], bool]:
    """Whether a process is the `ssh` that holds a node."""

    def is_meant(process: Path) -> bool:
        words = (process / "cmdline").read_bytes().split(b"\0")
        return {name.encode(), str(nodes.config).encode(), b"BatchMode=yes"} <= set(words)

    return is_meant


def known_to_others(uids: tuple[int, ...]) -> str:
    """What others could read of a run's certificates, or nodes of its secret."""
    of_nodes = processes_of(*uids)
    arguments = {
        pid: line
        for text in ("BEGIN CERTIFICATE", "PRIVATE KEY", "LS0tLS1CRUdJTi")
        for pid, line in processes_that_know(text, files=("cmdline",)).items()
    }
    secrets = processes_that_know(SECRET).keys() & of_nodes.keys()
    open_folders = [str(path) for path in folders_of(*uids) if path.stat().st_mode & 0o077]
    return " ".join([*arguments.values(), *(of_nodes[pid] for pid in secrets), *open_folders])


def test_all_are_graded_though_a_connection_was_cut(run: tuple[Grading, str], graded: SmallClass) -> None:
    results = run[0].results()
    assert all_points(results) == dict.fromkeys(graded.students, ("graded", 10))
    assert "node1: the connection failed or was lost" in run[0].said()
    assert "process died" not in run[0].said(), "a lost node says nothing against a submission"


def test_a_host_that_cannot_be_used_is_named_with_the_reason(run: tuple[Grading, str]) -> None:
    lines = [line for line in run[0].said().splitlines() if line.startswith("node ")]
    for begin, reason in (
        ("node root@node1: the connection failed or was lost", "Permission denied"),
        ("node no-such-host.invalid: cannot be reached", "Try: ssh no-such-host.invalid"),
        (f"@node2: {OTHER_PYTHON} there does not have the grader", "name its Python in the list of hosts"),
    ):
        [line] = [line for line in lines if begin in line]
        assert reason in line


def test_nobody_else_could_read_its_certificates(run: tuple[Grading, str]) -> None:
    """Neither in arguments nor in folders; and no node has the course's secret."""
    assert run[1] == ""


def test_nothing_is_left_on_the_nodes(run: tuple[Grading, str], uids: tuple[int, ...]) -> None:
    wait_until(lambda: not processes_of(*uids), "all processes of the nodes have ended", 120)
    assert folders_of(*uids) == []


def test_a_killed_coordinator_leaves_nothing_on_the_nodes(
    ssh_nodes: SshNodes, graded: SmallClass, hosts: Path, uids: tuple[int, ...], tmp_path: Path
) -> None:
    environment = {"GRADER_SSH": f"ssh -F {ssh_nodes.config}"}
    only = tmp_path / "hosts.txt"
    only.write_text(hosts.read_text(encoding="utf-8").splitlines()[0], encoding="utf-8")
    with grading(graded, f"ssh:{only}", tmp_path / "out", environment) as grades:
        grades.wait_for("node1: ready")
        grades.process.kill()
        wait_until(lambda: not processes_of(*uids), "all processes of the nodes have ended", 120)
    assert folders_of(*uids) == []
