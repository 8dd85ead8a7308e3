"""Machines to reach by SSH, for tests: four servers at addresses of loopback, each with a user of its own."""

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import pytest

from tests.loopback_servers import free_ports, listens, program, server, wait_until
from tests.node_users import NodeUser, end_processes_of, node_users

SERVER = """
AddressFamily inet
ListenAddress {address}
Port {port}
HostKey {home}/{name}.key
PidFile none
LogLevel VERBOSE
UsePAM no
AuthenticationMethods publickey
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin no
AllowUsers {user}
X11Forwarding no
PrintMotd no
# tests begin many sessions at once
MaxStartups 200
MaxSessions 200
Subsystem sftp internal-sftp
"""
CLIENT_HOST = """
Host {name}
    HostName {address}
    Port {port}
    User {user}
"""
CLIENT = """
Host *
    BatchMode yes
    ConnectTimeout 10
    IdentityFile {home}/client.key
    IdentitiesOnly yes
    IdentityAgent none
    StrictHostKeyChecking yes
    UserKnownHostsFile {home}/known_hosts
    GlobalKnownHostsFile /dev/null
"""


@dataclass(frozen=True)
class SshNode:
    """One machine, as its clients see it.

    Attributes:
        name: Its name in the client's configuration.
        address: Its address, and `port` its server's port.
        user: Who logs in there, and nobody else.
    """

    name: str
    address: str
    port: int
    user: NodeUser


@dataclass(frozen=True)
class SshNodes:
    """Machines that `ssh -F CONFIG NAME` reaches, without a question.

    Attributes:
        home: The private folder of the servers' and the client's files; each server's log is `NAME.log`.
        nodes: The machines.
        servers: The process of each machine's server, by the machine's name.
    """

    home: Path
    nodes: tuple[SshNode, ...]
    servers: dict[str, "subprocess.Popen[bytes]"]

    @property
    def config(self) -> Path:
        """The client's configuration."""
        return self.home / "ssh_config"

    @property
    def key(self) -> Path:
        """The client's private key, which every machine accepts."""
        return self.home / "client.key"

    @property
    def known_hosts(self) -> Path:
        """The file of the machines' public keys."""
        return self.home / "known_hosts"

    def run(self, name: str, command: str, *options: str) -> "subprocess.CompletedProcess[str]":
        """What became of a command on a machine.

        Args:
            name: The machine's name.
            command: For the shell of the machine's user.
            options: Further options of `ssh`.
        """
        words = ["ssh", "-F", str(self.config), *options, name, command]
        return subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60)

    def switch_off(self, name: str) -> None:
        """Let a machine be gone at once: its server, all connections to it, and all that its user runs."""
        node = next(node for node in self.nodes if node.name == name)
        self.servers[name].kill()
        self.servers[name].wait()
        end_processes_of(node.user)


@contextlib.contextmanager
def ssh_nodes(lacking: Callable[[str], NoReturn], *, count: int = 4) -> Iterator[SshNodes]:
    """Running servers `node1`, `node2` ... at 127.0.0.2, 127.0.0.3 ..., all at the same free port.

    Skips the test where this process may not make users.

    Args:
        lacking: Skips the test if the programs are not installed.
        count: How many.
    """
    daemon = program("sshd", "openssh-server", lacking)
    for name in ("ssh", "ssh-keygen"):
        program(name, "openssh-client", lacking)
    with node_users(count) as users:
        home = Path(tempfile.mkdtemp(prefix="grader-sshd-", dir="/tmp"))
        try:
            addresses = [f"127.0.0.{number}" for number in range(2, 2 + count)]
            (port,) = free_ports(1, addresses)
            nodes = tuple(
                SshNode(f"node{number}", address, port, user)
                for number, (address, user) in enumerate(zip(addresses, users, strict=True), 1)
            )
            made = SshNodes(home, nodes, {})
            _write_client_files(made)
            # into which the daemon locks what it does before a login; Debian's service makes it at its start
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
            with contextlib.ExitStack() as stack:
                for node in nodes:
                    _write_server_files(made, node)
                    made.servers[node.name] = stack.enter_context(_started(made, node, daemon))
                yield made
        finally:
            shutil.rmtree(home)


def new_key(path: Path) -> str:
    """Make a private key at `path` and a public one beside it, and tell the public one's line."""
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", path.stem, "-f", str(path)]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, timeout=60)
    return path.with_name(f"{path.name}.pub").read_text(encoding="utf-8")


def _write_client_files(made: SshNodes) -> None:
    new_key(made.key)
    hosts = "".join(
        CLIENT_HOST.format(name=node.name, address=node.address, port=node.port, user=node.user.name)
        for node in made.nodes
    )
    made.config.write_text(hosts + CLIENT.format(home=made.home), encoding="utf-8")


def _write_server_files(made: SshNodes, node: SshNode) -> None:
    public = new_key(made.home / f"{node.name}.key")
    with made.known_hosts.open("a", encoding="utf-8") as known:
        known.write(f"[{node.address}]:{node.port} {public}")
    (made.home / f"{node.name}.conf").write_text(
        SERVER.format(
            home=made.home, name=node.name, address=node.address, port=node.port, user=node.user.name
        ),
        encoding="utf-8",
    )
    folder = node.user.home / ".ssh"
    folder.mkdir(mode=0o700)
    shutil.copyfile(made.home / "client.key.pub", folder / "authorized_keys")
    for path in (folder, folder / "authorized_keys"):
        os.chown(path, node.user.uid, node.user.gid)


@contextlib.contextmanager
def _started(made: SshNodes, node: SshNode, daemon: str) -> Iterator["subprocess.Popen[bytes]"]:
    log = made.home / f"{node.name}.log"
    with server([daemon, "-D", "-e", "-f", str(made.home / f"{node.name}.conf")], log) as process:
        wait_until(lambda: listens(node.address, node.port), f"{node.name} listens", 20, [process], [log])
        try:
            yield process
        finally:
            # before its server, which then asks about what became of them
            end_processes_of(node.user)


@pytest.fixture(scope="module", name="ssh_nodes")
def ssh_nodes_of_a_module(lacking: Callable[[str], NoReturn]) -> Iterator[SshNodes]:
    """Four machines to reach by SSH, for the tests of a module."""
    with ssh_nodes(lacking) as made:
        yield made
