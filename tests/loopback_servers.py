"""Servers that tests start for themselves: their programs, free ports, and their end, whatever happens."""

import contextlib
import os
import random
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NoReturn

# no outgoing connection gets a port below those that the system gives out
PORTS = range(12_000, 32_000)
SECONDS_TO_STOP = 10.0


def program(name: str, package: str, lacking: Callable[[str], NoReturn]) -> str:
    """The path of a program, also of one that is in no ordinary user's search path.

    Args:
        name: The program's name.
        package: The Debian package that has it.
        lacking: Skips the test if it is not installed.
    """
    places = os.pathsep.join([*os.get_exec_path(), "/usr/sbin", "/sbin"])
    return shutil.which(name, path=places) or lacking(package)


def free_ports(count: int, addresses: Iterable[str] = ("127.0.0.1",)) -> list[int]:
    """Ports on which nobody listens at any of the addresses."""
    addresses, ports = tuple(addresses), []
    for port in random.SystemRandom().sample(PORTS, len(PORTS)):
        if all(_is_free(address, port) for address in addresses):
            ports.append(port)
        if len(ports) == count:
            return ports
    raise OSError(f"Fewer than {count} ports are free at {', '.join(addresses)}.")


def _is_free(address: str, port: int) -> bool:
    with socket.socket() as tried:
        try:
            tried.bind((address, port))
        except OSError:
            return False
    return True


def listens(address: str, port: int) -> bool:
    """Whether somebody takes connections there."""
    with socket.socket() as tried:
        tried.settimeout(5)
        return tried.connect_ex((address, port)) == 0


@contextlib.contextmanager
def server(
    command: Sequence[str], log: Path, env: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """A server that stays in the foreground, and ends with the block and with this process.

    Args:
        command: Its program and arguments.
        log: The file to which what it prints is added.
        env: Its environment; ours by default.
    """
    # a killed pytest runs no code at its end, so the system ends the server
    command = ["setpriv", "--pdeathsig", "KILL", "--", *command]
    with log.open("ab") as printed:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=printed, stderr=printed, env=env, cwd="/"
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(SECONDS_TO_STOP)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def wait_until(
    is_so: Callable[[], bool],
    awaited: str,
    seconds: float,
    servers: Iterable[subprocess.Popen[bytes]] = (),
    logs: Iterable[Path] = (),
) -> None:
    """Return as soon as something is so.

    Args:
        is_so: Asked again and again.
        awaited: What is waited for, such as "slurmctld listens".
        seconds: For how long.
        servers: The wait is in vain as soon as one of them has ended.
        logs: Their last lines are told if it is not so in time.

    Raises:
        AssertionError: It was not so in time.
    """
    servers, deadline = tuple(servers), time.monotonic() + seconds
    while not is_so():
        ended = [process.args for process in servers if process.poll() is not None]
        if ended or time.monotonic() > deadline:
            tails = "\n".join(f"{log}:\n{_tail(log)}" for log in logs)
            why = f"{ended} ended" if ended else f"{seconds:g} seconds have passed"
            raise AssertionError(f"It was waited in vain until {awaited}: {why}.\n{tails}")
        time.sleep(0.05)


def _tail(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-15:]) if log.exists() else "(no file)"


def living(is_meant: Callable[[Path], bool]) -> dict[int, str]:
    """The command lines of the processes, by pid, whose folder in /proc is meant; not those that ended.

    An ended process stays in /proc until its parent asks for its status, which some containers' first
    process never does.
    """
    found = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            if (line := (entry / "cmdline").read_bytes()) and is_meant(entry):
                found[int(entry.name)] = line.replace(b"\0", b" ").decode(errors="replace").strip()
        except OSError:
            continue  # it ended while we looked, or is another user's
    return found


def kill(is_meant: Callable[[Path], bool]) -> None:
    """End processes, and what they start meanwhile, until none of them lives.

    Args:
        is_meant: As in `living`.
    """

    def none_lives() -> bool:
        for pid in (pids := living(is_meant)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return not pids

    wait_until(none_lives, "all that is to end has ended", 30)
