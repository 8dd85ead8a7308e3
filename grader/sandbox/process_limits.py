"""What one process may use: resource limits, and a cgroup of its own if the host may make one.

A cgroup (version 1 or 2) bounds the memory of a process and all that it starts. If cgroups also share out the
CPUs, each process gets an equal share of them, however many threads it starts, so that nobody's neighbor runs
out of time. Whoever starts a process decides how much it may use.
"""

import contextlib
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from grader.domain.errors import EngineError
from grader.domain.limits import MEGABYTE, Limits
from grader.sandbox.namespaces import pid_in_host_proc


@dataclass(frozen=True)
class ProcessLimits:
    """What one process may use. Megabytes are 10**6 bytes, kilobytes 10**3.

    Attributes:
        memory_mb: Beyond what it shares with its host at the fork.
        cpu_seconds: CPU time over all threads.
        file_mb: The greatest size of one file.
        processes: How many threads it may start; it cannot fork.
        open_files: Descriptors.
        scratch_mb: Its working folder, /tmp and shared memory together.
        output_kb: How much of the end of its output is kept.
    """

    memory_mb: int = Limits.memory_mb
    cpu_seconds: int = 300
    file_mb: int = Limits.file_mb
    processes: int = Limits.processes
    open_files: int = 256
    scratch_mb: int = 256
    output_kb: int = Limits.output_kb

    @classmethod
    def within(cls, limits: Limits, *, cpu_seconds: int) -> "ProcessLimits":
        """The assignment's limits of the same names, with the CPU time of one stage."""
        chosen = {field.name for field in fields(limits)} & {field.name for field in fields(cls)}
        return cls(cpu_seconds=cpu_seconds, **{name: getattr(limits, name) for name in chosen})

    def exceeded(self, limit: str) -> str:
        """That a process went beyond one of its limits, as a clause.

        Args:
            limit: `memory`, `cpu` or `file_size`: those at which a process ends.
        """
        return {
            "memory": f"it used more than its limit of {self.memory_mb} MB of memory",
            "cpu": f"it used more than its limit of {self.cpu_seconds} s of processor time",
            "file_size": f"it wrote more than its limit of {self.file_mb} MB into one file",
        }[limit]

    def in_words(self, resource: str) -> str:
        """How much of something a process may have, as a clause; whether it used that up is not said.

        Args:
            resource: `memory`, `file_size`, `disk`, `writing` (the last two), `processes`, `open_files`.
        """
        return {
            "memory": f"its limit is {self.memory_mb} MB of memory",
            "file_size": f"its limit is {self.file_mb} MB for one file",
            "disk": f"its limit is {self.scratch_mb} MB of files, and some thousands of them",
            "writing": f"its limit is {self.file_mb} MB for one file and {self.scratch_mb} MB in all",
            "processes": f"its limit is {self.processes} processes and threads",
            "open_files": f"its limit is {self.open_files} open files at once",
        }[resource]

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> "ProcessLimits":
        """The limits of a request.

        Raises:
            EngineError: A name is unknown, or a value is not a positive whole number.
        """
        names = {field.name for field in fields(cls)}
        for name, value in document.items():
            if name not in names or type(value) is not int or value <= 0:
                raise EngineError(
                    f"limit {name} = {value!r}: a limit is one of {', '.join(sorted(names))} "
                    "and a positive whole number."
                )
        return cls(**document)


def address_space() -> int:
    """The calling process's address space, in bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    import resource

    return pages * resource.getpagesize()


def resident() -> int:
    """What the calling process holds in memory, in bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    import resource

    return pages * resource.getpagesize()


def ended_for_memory() -> int:
    """How many processes of the caller's own cgroup were ended for want of memory; 0 if Linux is silent.

    Those that were ended for the limit of a cgroup of their own are not among them: others' submissions may
    use theirs up at any time. Where Linux counts for the whole machine only, they are.
    """
    files: list[Path] = []
    with contextlib.suppress(OSError):
        files += [folder / _EVENTS[version] for version, folder, _ in _own_folders()]
    for file in (*files, Path("/proc/vmstat")):
        with contextlib.suppress(OSError):  # a container may hide it
            return _counted(file).get("oom_kill", 0)
    return 0


# version -> the file of a cgroup that counts what was ended in it, and not within others in it
_EVENTS = {1: "memory.oom_control", 2: "memory.events.local"}


def _counted(file: Path) -> dict[str, int]:
    rows = (row.split() for row in file.read_text().splitlines())
    return {key: int(value) for key, value in rows}


def apply_limits(limits: ProcessLimits, *, address_space_bytes: int | None, own_user: bool = True) -> None:
    """Put the limits on the calling process permanently.

    Args:
        address_space_bytes: The bound on its address space, if memory is bounded that way.
        own_user: It has a user of its own; otherwise the user's other processes would count as well.
    """
    import resource

    wanted = {
        resource.RLIMIT_CPU: limits.cpu_seconds,
        resource.RLIMIT_FSIZE: limits.file_mb * MEGABYTE,
        resource.RLIMIT_NPROC: limits.processes,
        resource.RLIMIT_NOFILE: limits.open_files,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_MEMLOCK: 0,
        resource.RLIMIT_MSGQUEUE: 0,
    }
    if not own_user:
        del wanted[resource.RLIMIT_NPROC]
    if address_space_bytes is not None:
        wanted[resource.RLIMIT_AS] = address_space_bytes
    for kind, value in wanted.items():
        _, hard = resource.getrlimit(kind)
        if hard != resource.RLIM_INFINITY:
            value = min(value, hard)
        # soft = hard: a process that catches SIGXCPU must not gain a second by it
        resource.setrlimit(kind, (value, value))


def observed_limits(pid: int) -> dict[str, str]:
    """Name -> hard limit of a process, as seen from outside (`Max cpu time` -> `300`)."""
    rows = Path(f"/proc/{pid}/limits").read_text().splitlines()[1:]
    return {row[:26].strip(): row[26:].split()[1] for row in rows}


# --- cgroups ---------------------------------------------------------------------------------------------


PREFIX = "grader-"


@dataclass(frozen=True)
class MemoryController:
    """Where memory cgroups can be made.

    Attributes:
        version: 1 or 2.
        parent: The folder that new cgroups go into.
        cpu_folder: With version 1, the folder for cgroups that share out the CPUs, if there is one.
    """

    version: int
    parent: Path
    cpu_folder: Path | None = None

    def cgroup(self, name: str, memory_mb: int) -> "Cgroup":
        """A new cgroup that holds at most `memory_mb` megabytes of memory and no swap."""
        path = self.parent / f"{PREFIX}{name}"
        path.mkdir()
        made = self._cgroup_at(path)
        try:
            if made.cpu_folder is not None:
                made.cpu_folder.mkdir(exist_ok=True)
            made._set_limit(memory_mb * MEGABYTE)
        except OSError:
            made.remove()
            raise
        return made

    def sweep(self) -> None:
        """Remove cgroups left behind by hosts that were killed."""
        for path in self.parent.glob(f"{PREFIX}*-*"):
            owner = path.name.removeprefix(PREFIX).partition("-")[0]
            if owner.isdigit() and not Path("/proc", owner).exists():
                self.remove_of(int(owner))

    def remove_of(self, host_pid: int) -> None:
        """Remove what a host that has ended left behind."""
        for path in self.parent.glob(f"{PREFIX}{host_pid}-*"):
            self._cgroup_at(path).remove()

    def _cgroup_at(self, path: Path) -> "Cgroup":
        return Cgroup(self.version, path, self.cpu_folder / path.name if self.cpu_folder else None)


@dataclass(frozen=True)
class Cgroup:
    """One process's cgroup.

    Attributes:
        path: Its folder.
        cpu_folder: Its other folder, if a separate hierarchy shares out the CPUs.
    """

    version: int
    path: Path
    cpu_folder: Path | None = None

    def _set_limit(self, limit: int) -> None:
        if self.version == 1:
            (self.path / "memory.limit_in_bytes").write_text(str(limit))
            swap = self.path / "memory.memsw.limit_in_bytes"
            if swap.exists():
                swap.write_text(str(limit))
            return
        (self.path / "memory.max").write_text(str(limit))
        for name, value in (("memory.swap.max", "0"), ("memory.oom.group", "1")):
            if (self.path / name).exists():
                (self.path / name).write_text(value)

    def enter(self) -> None:
        """Move the calling process in, which takes the kernel about 10 ms."""
        for folder in filter(None, (self.path, self.cpu_folder)):
            (folder / "cgroup.procs").write_text("0")

    def was_killed(self) -> bool:
        """Whether a process in it was killed for memory, its own or that of others."""
        name = "memory.oom_control" if self.version == 1 else "memory.events"
        return _counted(self.path / name).get("oom_kill", 0) > 0

    def ran_out(self) -> bool:
        """Whether a process in it was killed since it reached its own limit.

        A limit around it may be reached by all of its processes together, and the machine's memory by others.
        """
        limit = int(
            (self.path / ("memory.limit_in_bytes" if self.version == 1 else "memory.max")).read_text()
        )
        reached = (self.peak_memory() or 0) >= limit - MEGABYTE
        if self.version == 2:
            reached = reached or _counted(self.path / "memory.events").get("oom", 0) > 0
        return reached and self.was_killed()

    def peak_memory(self) -> int | None:
        """The most memory that it used at once, in bytes; None if Linux does not say (before 5.19)."""
        file = self.path / ("memory.max_usage_in_bytes" if self.version == 1 else "memory.peak")
        return int(file.read_text()) if file.exists() else None

    def remove(self) -> None:
        """Remove it. Its processes must have been reaped; the kernel may take a moment to notice."""
        for folder in filter(None, (self.cpu_folder, self.path)):
            _remove_folder(folder)


def _remove_folder(folder: Path) -> None:
    for _ in range(200):
        try:
            folder.rmdir()
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(0.005)
        else:
            return


def memory_controller() -> MemoryController | None:
    """Where the calling process can make memory cgroups, found by making one."""
    for version, parent in _candidates():
        controller = MemoryController(version, parent, _cpu_folder() if version == 1 else None)
        try:
            controller.cgroup(f"{pid_in_host_proc()}-trial", 100).remove()
        except OSError:
            continue
        return controller
    return None


def _candidates() -> list[tuple[int, Path]]:
    """(version, folder) in which a memory cgroup might be made, nearest to the calling process first."""
    candidates: list[tuple[int, Path]] = []
    for version, own_folder, mount in _own_folders():
        if version == 1:
            candidates.append((1, own_folder))
            continue
        # version 2 holds processes in leaves only: the child goes beside the host, not below it
        for folder in (own_folder, *own_folder.parents):
            control = folder / "cgroup.subtree_control"
            if control.exists() and "memory" in control.read_text().split():
                candidates.append((2, folder))
            if folder == mount:
                break
    return candidates


def _own_folders() -> list[tuple[int, Path, Path]]:
    """(version, folder, mount point) of the calling process's cgroups, as far as they may bound memory."""
    mounts = _mounts()
    folders: list[tuple[int, Path, Path]] = []
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        version = 1 if "memory" in controllers.split(",") else 2 if not controllers else 0
        if version in mounts:
            root, mount = mounts[version]
            own_path = Path(path)
            inside = own_path.relative_to(root) if own_path.is_relative_to(root) else Path()
            folders.append((version, mount / inside, mount))
    return sorted(folders)


def _cpu_folder() -> Path | None:
    """The calling process's folder where version 1 shares out the CPUs; None if it is not writable."""
    rows = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
    own_path = next((Path(path) for _, names, path in rows if "cpu" in names.split(",")), None)
    for root, mount, kind, options in _hierarchies():
        if own_path is not None and kind == "cgroup" and "cpu" in options:
            folder = mount / own_path.relative_to(root) if own_path.is_relative_to(root) else mount
            return folder if os.access(folder, os.W_OK) else None
    return None


def _mounts() -> dict[int, tuple[Path, Path]]:
    """Version -> (root within the hierarchy, mount point) of the hierarchies that may bound memory."""
    mounts: dict[int, tuple[Path, Path]] = {}
    for root, mount, kind, options in _hierarchies():
        if kind == "cgroup" and "memory" in options:
            mounts.setdefault(1, (root, mount))
        elif kind == "cgroup2":
            mounts.setdefault(2, (root, mount))
    return mounts


def _hierarchies() -> Iterator[tuple[Path, Path, str, list[str]]]:
    """(root within the hierarchy, mount point, kind, options) of all that is mounted."""
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        before, _, after = line.partition(" - ")
        root, mount = before.split()[3:5]
        kind, _, options = after.split(" ", 2)
        yield Path(root), Path(mount), kind, options.split(",")


def observed_cgroups(pid: int) -> set[str]:
    """The last parts of the cgroup paths that a process is in, as seen from outside."""
    lines = Path(f"/proc/{pid}/cgroup").read_text().splitlines()
    return {Path(line.split(":", 2)[2]).name for line in lines}
